// Package packed holds Jobs in caches as compressed protobuf: a tenth of the allocations, and a
// twelfth of the memory of a batchv1.Job. Most of that is empty fields and maps of one entry, and
// most of the protobuf names and defaults, which all Jobs share in the dictionary.
//
//	watch ──> transform (slim) ──> Pack ──> store of an informer
//	                                          ├──> Shared: one Job, for who changes nothing of it
//	                                          ├──> Unpack: a copy
//	                                          ├──> Handler: both states of an event, shared
//	                                          └──> Facts: of all Jobs at once, without unpacking
//
// The Jobs that came or were unpacked last are held unpacked, too, up to a bound in bytes: most are
// read within a moment, and soon replaced. One that came is compressed when it's no longer among
// them.
//
// Cache is controller-runtime's cache with its Jobs packed. Its readers and handlers see
// batchv1.Jobs. Handlers share them, and so does Get with client.UnsafeDisableDeepCopy. HubJobs
// decides which hub Jobs it holds whole, which ones light, without their Pod templates, and which
// ones as stubs. A light Job has all that's read without its template. A stub only tells where a
// Job is placed, and in which state: nobody decides about the Job before it's read from the hub.
// Each worker's feed packs its mirrors by New.
//
// HubJobs also knows what each large Job weighs: what it takes while it's read from the hub again.
//
// Unpacking takes some 10 microseconds for a Job of the usual size that isn't recent. What visits
// all Jobs often asks for their Facts.
package packed
