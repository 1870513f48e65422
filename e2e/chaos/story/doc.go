// Package story makes the Jobs of a chaos run: each with what its user does to it, and the end that
// it must have, as it would have it on one healthy cluster. It is pure; the same random numbers
// make the same stories.
//
//	kind ("elastic") + random numbers ---> Story: Job, Acts of the user, End
//
// Pods are simulated by the rig; labels of the Pod template say how long they run and how they end.
// What depends on how many Pods a Job has had (fail-first) counts anew in each worker; so retried
// Jobs have a backoffLimit with room for some moves.
package story
