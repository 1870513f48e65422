// Package access is how the plugin talks to clusters: a client of the kinds that it knows, without
// discovery; the hub's aggregated API, by which the Jobs' Pods are read; and errors that say what
// to do.
package access
