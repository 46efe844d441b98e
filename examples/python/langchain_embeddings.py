# SPDX-License-Identifier: Apache-2.0
"""An aligned encoder for LangChain. Needs langchain-core (pip install langchain-core).

`AlignedEmbeddings` puts a model behind any embeddings of LangChain: documents become rows of one
side, queries rows of the other. Vector stores of LangChain mostly rank by the cosine, for which the
forms "index_cosine" and "query_cosine" keep the balance: their cosine is half the balanced score.
"""

import sys
from pathlib import Path

try:
    from langchain_core.embeddings import Embeddings
    from langchain_core.vectorstores import InMemoryVectorStore
except ImportError:
    print("skipped: langchain-core is not installed (pip install langchain-core)")
    sys.exit()

import numpy as np

import unicon


class AlignedEmbeddings(Embeddings):
    """The vectors of `documents` (an Embeddings of one side) and of `queries` (of the other) in the
    shared space of a model."""

    def __init__(self, model, documents, queries, side="y"):
        self.model, self.documents, self.queries, self.side = model, documents, queries, side

    def embed_documents(self, texts):
        rows = np.array(self.documents.embed_documents(texts), np.float32)
        return self.model.embed(rows, self.side, "index_cosine").tolist()

    def embed_query(self, text):
        rows = np.array([self.queries.embed_query(text)], np.float32)
        return self.model.embed(rows, "yx"["xy".index(self.side)], "query_cosine")[0].tolist()


class Stored(Embeddings):
    """In the place of an encoder: "lower 7" is row 7 of a file that it once wrote."""

    def __init__(self, path):
        self.rows = np.load(path)

    def embed_documents(self, texts):
        return [self.rows[int(text.split()[1])].tolist() for text in texts]

    def embed_query(self, text):
        return self.embed_documents([text])[0]


data = Path(__file__).resolve().parents[2] / "data" / "digits"
aligner = unicon.Aligner(preset="fast", balance="softmax:5")
aligner.fit(data / "upper.train.npy", data / "lower.train.npy")
upper, lower = data / "upper.test.npy", data / "lower.test.npy"

store = InMemoryVectorStore(AlignedEmbeddings(aligner.model_, Stored(lower), Stored(upper)))
count = len(np.load(lower))
store.add_texts([f"lower {i}" for i in range(count)])

expected, exact = aligner.search(upper, lower, k=5)
same = 0
for i in range(50):
    found = store.similarity_search_with_score(f"upper {i}", k=5)
    scores = 2 * np.array([score for _, score in found])
    assert abs(scores - exact[i]).max() < 1e-5, "the scores are the same"
    same += sum(document.page_content == f"lower {row}" for (document, _), row in zip(found, expected[i]))
print(f"{same / 250:.2%} of 250 places agree with search, any others are within 1e-5")
print("upper half 0 finds", [document.page_content for document in store.similarity_search("upper 0", k=3)])
