"""A page in which one types text and sees it cut by two tokenizers, exactly as `Tokenizer.encode` cuts it.

`page_model` writes all that a page needs of a tokenizer, `text_cuts.js` and `encoder.js` encode with it,
`comparison.js` shows what came out. What a page can't do exactly is refused when it is made, or, where it hangs on the
browser, in the page.
"""
