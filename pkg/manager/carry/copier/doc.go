// Package copier carries out what package carry decides: it reads sources on the hub, writes copies
// in workers, and records for which Jobs that's done.
//
//	Copier.Carry   reads an object in the worker, its source on the hub, writes; for each reference
//	Tracker        which state of which source was copied for a Job; a restart makes it anew
//	Watch          the sources' versions, by a metadata-only watch of the kinds that some Job needs
//
// Contents are read live and kept nowhere. The watch caches only the name and version of an object.
// A kind is watched from the first Job on that needs it, so a hub whose workers carry nothing has
// no watch.
//
// # Read order
//
// The Tracker records a Job before its sources are read: a later change is noticed, whether the
// watch has synced or not. An object in the worker is read before its source, and replaced only if
// it's unchanged since: of two that update the same copy, the one with the older source fails and
// retries.
//
// # Writes
//
// A copy is replaced by an Update with the resourceVersion that was read: what the source lost must
// go. An owner is added by a strategic merge patch without it: many Jobs that share a copy do so at
// once.
package copier
