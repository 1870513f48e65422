// Package terraform has Terraform and its provider for Kubernetes manage dispatched Jobs, as they
// are. They are built from their Go modules, which takes minutes: `make clients` runs this package.
package terraform
