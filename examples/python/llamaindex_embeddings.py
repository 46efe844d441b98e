# SPDX-License-Identifier: Apache-2.0
"""An aligned encoder for LlamaIndex. Needs llama-index-core (pip install llama-index-core).

`AlignedEmbedding` puts a model behind any embedding model of LlamaIndex: texts of nodes become rows
of one side, queries rows of the other. Its vector stores rank by the cosine, for which the forms
"index_cosine" and "query_cosine" keep the balance: their cosine is half the balanced score.
"""

import sys
from pathlib import Path

try:
    from llama_index.core import VectorStoreIndex
    from llama_index.core.base.embeddings.base import BaseEmbedding
    from llama_index.core.bridge.pydantic import PrivateAttr
    from llama_index.core.schema import TextNode
except ImportError:
    print("skipped: llama-index-core is not installed (pip install llama-index-core)")
    sys.exit()

import numpy as np

import unicon


class AlignedEmbedding(BaseEmbedding):
    """The vectors of `texts` (an embedding model of one side) and of `queries` (of the other) in the
    shared space of a model."""

    _parts = PrivateAttr()

    def __init__(self, model, texts, queries, side="y", **keywords):
        super().__init__(**keywords)
        self._parts = (model, texts, queries, side)

    def _get_text_embedding(self, text):
        model, texts, _, side = self._parts
        row = np.array([texts.get_text_embedding(text)], np.float32)
        return model.embed(row, side, "index_cosine")[0].tolist()

    def _get_query_embedding(self, query):
        model, _, queries, side = self._parts
        row = np.array([queries.get_query_embedding(query)], np.float32)
        return model.embed(row, "yx"["xy".index(side)], "query_cosine")[0].tolist()

    async def _aget_query_embedding(self, query):
        return self._get_query_embedding(query)


class Stored(BaseEmbedding):
    """In the place of an encoder: "lower 7" is row 7 of a file that it once wrote."""

    _rows = PrivateAttr()

    def __init__(self, path, **keywords):
        super().__init__(**keywords)
        self._rows = np.load(path)

    def _get_text_embedding(self, text):
        return self._rows[int(text.split()[1])].tolist()

    _get_query_embedding = _get_text_embedding

    async def _aget_query_embedding(self, query):
        return self._get_text_embedding(query)


data = Path(__file__).resolve().parents[2] / "data" / "digits"
aligner = unicon.Aligner(preset="fast", balance="softmax:5")
aligner.fit(data / "upper.train.npy", data / "lower.train.npy")
upper, lower = data / "upper.test.npy", data / "lower.test.npy"

encoder = AlignedEmbedding(aligner.model_, Stored(lower), Stored(upper))
nodes = [TextNode(text=f"lower {i}", id_=str(i)) for i in range(len(np.load(lower)))]
index = VectorStoreIndex(nodes, embed_model=encoder)
retriever = index.as_retriever(similarity_top_k=5)

expected, exact = aligner.search(upper, lower, k=5)
same = 0
for i in range(50):
    found = retriever.retrieve(f"upper {i}")
    scores = 2 * np.array([node.score for node in found])
    assert abs(scores - exact[i]).max() < 1e-5, "the scores are the same"
    same += sum(node.node_id == str(row) for node, row in zip(found, expected[i]))
print(f"{same / 250:.2%} of 250 places agree with search, any others are within 1e-5")
print("upper half 0 finds", [node.text for node in retriever.retrieve("upper 0")[:3]])
