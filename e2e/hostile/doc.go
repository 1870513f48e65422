// Package hostile has tests in which an adversary acts: a worker that lies about all that it can
// write, a tenant of the hub, somebody with a stolen kubeconfig. README.md lists the claims behind
// docs/explanation/security.md. Those for which a unit test isn't enough are tested here, on real
// API servers.
//
// The clusters are a hub and three workers. The adversary has full access to the worker "hostile",
// through its kubeconfig and by a proxy in front of its API server; "w1" and "w2" are honest, and
// what happens there is the same with the adversary as without it.
package hostile
