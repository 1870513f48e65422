// Package carry decides what is copied to a Job's worker: the ConfigMaps, Secrets, ServiceAccounts
// and headless Services that the Pod template refers to. It is pure. Package copier reads and
// writes; package dispatch decides when.
//
//	WorkerCluster spec.carry ─┐
//	hub Job's Pod template ───┴─▶ References ─▶ Select ─▶ annotation on the mirror
//	                                                        │  (created suspended)
//	source on the hub ───┐                                  ▼
//	object in the worker ┴─▶ Decide: create | update | recreate | add owner | leave
//	                                                        │  (mirror is resumed)
//	                                                        ▼
//	source changes (watch) ─────────────────────────▶ the same again
//
// # Vocabulary
//
//   - A source is the object on the hub, in the Job's namespace.
//   - A copy is the object of the same name in the worker: labelled
//     jobferry.dev/origin, with the source's UID in jobferry.dev/hub-uid, owned by
//     every mirror that uses it. The worker's garbage collector deletes it after
//     the last of them.
//   - A foreign object has the name of a copy, and isn't one. The manager never
//     writes it; Pods use it as it is.
//
// # What is carried
//
// The kinds in the WorkerCluster's spec.carry at the time when the mirror is created, which an
// annotation on the mirror keeps. Of a ConfigMap and a Secret: labels, data, type and immutable. Of
// a ServiceAccount: labels, imagePullSecrets and automountServiceAccountToken. No annotations:
// they're addressed to controllers on the hub, hold whole manifests (kubectl), or grant permissions
// in a cloud. Only those of ServiceAccounts are carried that an admin of the hub allows: none by
// default, as whoever writes ServiceAccounts on the hub would ask for rights in the worker. A note
// says which are left out. Never ServiceAccount tokens, bootstrap tokens, registrations of workers,
// Roles or RoleBindings, and not the ServiceAccount "default", which each namespace has. A
// ServiceAccount's imagePullSecrets are carried as well, if Secrets are.
//
// Of a Service: labels, selector, ports and publishNotReadyAddresses. Only the one that the Pods
// have as their subdomain, and only a headless one: then the worker's DNS has the names by which
// they find each other. Others lead to what isn't in the worker.
//
// PersistentVolumeClaims are never carried: placement chooses a worker that has them.
//
// Uncarried says what the Pods name that isn't carried, and start without: the controller of Jobs
// looks for it in the worker as far as the hub's account may, and tells what isn't there.
//
// # When a source is missing
//
// The mirror stays suspended in its worker until the source appears, unless the reference is
// optional, or the worker has an object of that name. If a source is deleted later, its copy stays:
// Pods on the hub would keep what they have mounted, too. References in imagePullSecrets count as
// optional, as they do for the kubelet. So does a subdomain; but a mirror waits if the hub's
// Service of that name can't be read.
//
// # How much is carried
//
// At most MaxReferences objects are carried along with one Job, and the Jobs of a namespace have a
// share of the references that are remembered. The mirror of a Job with more stays suspended, and
// an event says so. The manager looks again from time to time, as for what is missing. API servers
// don't check the names in all kinds of references: what no object can be called isn't asked for.
// An object of so many keys that it takes more than MaxBytes in memory isn't carried either.
//
// # Trade-offs
//
// The manager compares contents, not hashes or versions. So it repairs an edited copy when its
// source changes, another Job needs it, or the manager restarts. It doesn't watch copies: that
// would take the right to list the workers' Secrets. Labels and image pull secrets that something
// in the worker adds stay.
//
// An object that many Jobs share holds one owner reference for each, and each new one writes the
// whole list. Ended Jobs are removed from a long list, so the unfinished Jobs of one namespace in
// one worker that share an object count: some thousands are near the API server's limit on its
// size.
//
// # Permissions
//
// Besides what the manager needs anyway, for the kinds to be carried:
//
//	hub     get, list, watch   configmaps, secrets, services, serviceaccounts (watch: metadata)
//	worker  get, create, update, patch, delete   the same
//
// Without them the mirror stays suspended, and an event on the hub Job says why (hub), or the Job
// is placed on another worker (worker).
package carry
