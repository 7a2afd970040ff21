"""Distinct pretokens and how often they occur: counted, merged, kept in files, sampled."""
