// Package watch sees Jobs, Pods and events of a cluster from outside: with connections of its own,
// straight to the API server, which no fault of the links touches. A watch that ends is begun anew
// with a list, again and again within a second while the API server is away.
package watch
