// The entries of the log in a bundle: each is proven to be in the tree of the checkpoint.
package main

import (
	"bytes"
	"math/bits"
)

// rootOf is the root that an inclusion proof leads to, by the recursive definition of RFC 6962 §2.1.1.
func rootOf(leaf []byte, index, size int64, proof [][]byte) []byte {
	require(0 <= index && index < size, "leaf_index", "A leaf has no place in a tree of %d leaves.", size)
	if size == 1 {
		require(len(proof) == 0, "proof_length", "An inclusion proof is too long.")
		return hash([]byte{0}, leaf)
	}
	require(len(proof) > 0, "proof_length", "An inclusion proof is too short.")
	left, rest, sibling := int64(1)<<(bits.Len64(uint64(size-1))-1), proof[:len(proof)-1], proof[len(proof)-1]
	if index < left {
		return hash([]byte{1}, rootOf(leaf, index, left, rest), sibling)
	}
	return hash([]byte{1}, sibling, rootOf(leaf, index-left, size-left, rest))
}

// proven is the entry in a leaf of the bundle, which must be in the tree.
func proven(leaf object, size int64, root []byte) object {
	const bad = "bundle_malformed"
	kind, index := get[string](leaf, "kind", bad), get[int64](leaf, "index", bad)
	data, proof := unbase64(get[string](leaf, "bytes", bad), bad), [][]byte{}
	for _, one := range texts(leaf, "proof", bad) {
		proof = append(proof, unbase64(one, bad))
	}
	require(bytes.Equal(rootOf(data, index, size, proof), root), "root", "The %s is not at index %d of the tree.", kind, index)
	return parse(data, kind+"_malformed", true)
}
