"""placeholder: written when the doors are"""
