// Package helm4 has Helm 4 install charts with Jobs on a hub, as it is. It is built from its Go
// modules, which takes minutes: `make clients` runs this package.
package helm4
