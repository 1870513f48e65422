// Package spanning holds the stories of Jobs that run on several workers at once, on real API
// servers with the built-in and the embedded Job controller: docs/how-to/spanning.md says what is
// promised.
package spanning
