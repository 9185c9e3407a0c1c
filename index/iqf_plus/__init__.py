from index.iqf_plus.index import IqfPlusObjectIndex
