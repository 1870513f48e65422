// Package oci makes what a release puts into registries, and puts it there.
//
//	programs, root certificates ──Image.Index──> index of images ──Save──> layout in a tar archive
//	packed chart ──Chart──> artifact                                              │ Load
//	                           └─────────────────── Push ─────────────────────────┘
//
// All digests depend only on the files: they're known before anything is pushed.
package oci
