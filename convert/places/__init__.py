"""Where a conversion works until its dataset is whole: folders and stores, who may write there, what is done."""
