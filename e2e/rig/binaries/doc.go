// Package binaries brings the programs that the rig runs, once, and keeps them.
//
// The programs are ordinary Go packages: etcd, the Kubernetes control plane, kubectl, kwok and
// Helm. Each family has a nested module of its own under e2e/versions, whose go.mod pins the
// version by a tool directive; nothing of their dependency graphs reaches the product or the tests,
// and several Kubernetes versions live side by side.
//
//	Ensure(release) --> for each program: in the cache? --no--> lock --> fetch, or else go build --> rename into the cache
//
// Vocabulary:
//   - release: the Kubernetes minor version of a cluster ("1.36"), and the programs that belong to
//     it.
//   - module: one folder under e2e/versions, from which one or more programs are built.
//   - server: Kubernetes' release server, which has the programs of the same versions.
//   - cache: $JOBFERRY_CACHE, or the folder jobferry in the user's cache folder. Its subfolders are
//     named after the module and a digest of everything that decides the result (of a program that
//     is built: module files, Go version, platform, flags; of one that is fetched: version,
//     platform), so a stale program is never used and a new pin never overwrites an old one.
//
// # Fetched or built
//
// A cold build takes minutes (kube-apiserver alone about five on two cores), and a download
// seconds, but not every machine can reach the server. It is tried for two seconds, once in a
// process. After its first failure, of whatever kind, the process builds what it still needs, and
// says why. RIG_BUILD=source builds everything.
//
// The checksum beside a program tells that the download is whole. That the program is Kubernetes'
// own rests on TLS. Programs of other projects (etcd, kwok, Helm, Kueue, JobSet, CoreDNS,
// Terraform) are always built: most builds take a minute or two, and another server would have to
// be trusted for it.
package binaries
