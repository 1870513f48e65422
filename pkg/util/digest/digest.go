// Package digest makes numbers of names and UIDs, for what remembers many of them only to recognize
// them: the texts would take more memory than all else that's remembered.
package digest

import "hash/maphash"

// Digest stands for a name or a UID in this process. As nobody outside knows the seed, nobody can
// make two that have the same; by chance, among a million, it happens once in 37 million times.
type Digest uint64

var seed = maphash.MakeSeed()

// Of returns the digest of a value.
func Of[T comparable](value T) Digest { return Digest(maphash.Comparable(seed, value)) }
