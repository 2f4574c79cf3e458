def page(book): return ""
