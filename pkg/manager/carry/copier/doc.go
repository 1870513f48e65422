// Package copier carries out what package carry decides: it reads sources on the hub, writes copies
// in workers, and remembers for which Jobs it did so.
//
//	Copier.Carry   reads an object in the worker, its source on the hub, writes; for each reference
//	Tracker        which state of which source was copied for a Job; a restarted manager copies again
//	Watch          the sources' versions, by a metadata-only watch of the kinds that some Job needs
//
// Contents are read live and kept nowhere. The watch caches only the name and version of an object.
// A kind is watched from the first Job on that needs it, so a hub whose workers carry nothing has
// no watch.
//
// # Read order
//
// The Tracker remembers a Job before the copier reads the Job's sources. So it notices a later
// change, whether the watch has synced or not. The copier reads an object in the worker before its
// source, and replaces the object only if it hasn't changed since. So if two updates of a copy
// compete, the one with the older source fails and is tried again.
//
// # Changes
//
// The Tracker remembers what was said of each source. So if one of them changes, the copier looks
// at that one alone, unless it's a ServiceAccount, which may name other imagePullSecrets.
// Thousands of Jobs may refer to one source, and a tenant may change it all the time. So the Jobs
// of a namespace take turns: the Tracker says when a Job is due, and until then what was copied
// counts as current.
//
// # Memory
//
// What is read has smallBytes at most. An object that has more is read again, with a part of a
// memory that it shares with others. If there is none, Carry fails, and is to be called again
// later.
//
// # Writes
//
// The copier replaces a copy by an Update with the resourceVersion that it read, because what the
// source doesn't have any more must go from the copy. It adds an owner by a strategic merge patch
// without a resourceVersion, because many Jobs that share a copy do so at once.
package copier
