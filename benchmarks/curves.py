def draw(book, folder): pass
