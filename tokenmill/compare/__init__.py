"""A page that encodes typed text with two tokenizers, with the same tokens as `Tokenizer.encode`.

`page_model` writes the data of a tokenizer, `text_cuts.js` and `encoder.js` encode with it, and `comparison.js` shows
the tokens. Tokenizers that a page cannot reproduce exactly raise an error when the page is made. Differences that
depend on the browser are reported in the page.
"""
