"""Search: embed a collection of texts once, keep the vectors in an index, and find the texts nearest to a query."""

from unmask.search.build import add_texts, make_index
from unmask.search.find import Found, find
from unmask.search.index_folder import Index, open_index
from unmask.search.rerank import relevance, rerank

__all__ = ["Found", "Index", "add_texts", "find", "make_index", "open_index", "relevance", "rerank"]
