// Package binaries builds the programs that the rig runs, once, and keeps them.
//
// The programs are ordinary Go packages: etcd, the Kubernetes control plane, kubectl, kwok and
// Helm. Each family has a nested module of its own under e2e/versions, whose go.mod pins the
// version by a tool directive; nothing of their dependency graphs reaches the product or the tests,
// and two Kubernetes versions live side by side.
//
//	Ensure(release) --> for each program: in the cache? --no--> lock, go build, rename into the cache
//
// Vocabulary:
//   - release: the Kubernetes minor version of a cluster ("1.36"), and the programs that belong to it.
//   - module: one folder under e2e/versions, from which one or more programs are built.
//   - cache: $JOBFERRY_CACHE, or the folder jobferry in the user's cache folder. Its subfolders are named after the
//     module and a digest of everything that decides the result (module files, Go version, platform, flags),
//     so a stale program is never used and a new pin never overwrites an old one.
//
// Trade-off: prebuilt programs would be there sooner, but they cannot be had everywhere, and the Go
// toolchain can. A cold build takes minutes (kube-apiserver alone about five on two cores), so
// progress is reported to the caller.
package binaries
