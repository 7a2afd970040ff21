"""HTML pages about tokenizers and datasets. A page is one file: it loads nothing and runs no script but its own."""
