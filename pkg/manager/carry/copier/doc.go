// Package copier carries out what package carry decides: it reads sources on the hub, writes copies
// in workers, and remembers for which Jobs that's done.
//
//	Copier.Carry   reads an object in the worker, its source on the hub, writes; for each reference
//	Book           which state of which source a Job was carried with; lost in a restart, and made again
//	Watch          the sources' versions, by a metadata-only watch of the kinds that some Job needs
//
// Contents are read live and kept nowhere. What the watch caches of an object is its name and
// version. A kind is watched from the first Job on that needs it, so a hub whose workers carry
// nothing pays nothing.
//
// # Read order
//
// A Job is entered in the Book before its sources are read: a change that comes later is noticed,
// whether the watch has synced or not. An object in the worker is read before its source, and
// replaced only as it was read: of two that update the same copy, the one with the older source
// fails, and looks again.
package copier
