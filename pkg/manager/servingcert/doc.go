// Package servingcert makes, rotates and spreads the certificate of what the manager serves to the
// hub's API server: its admission webhook, its aggregated API.
//
//	Secret ─────────┐                                ┌─▶ Secret: a new generation, the expired ones gone
//	webhook config ─┼─▶ gather ─▶ decide ─▶ apply ───┼─▶ webhook config, APIService: caBundle
//	APIService ─────┘             (pure)             └─▶ this process: what GetCertificate answers
//
// # Words
//
//	generation  a self-signed serving certificate with its key: one entry of the Secret
//	bundle      the certificates of all generations that haven't expired: the caBundle
//	target      an object whose caBundle the hub's API server reads
//	settled     a generation that has been in the Secret for Options.Settle
//
// # How a certificate is exchanged without a failed request
//
// A new generation is trusted before it's served: it's written to the Secret when the last third of
// its predecessor's life begins, every replica injects the bundle of both into the targets, and
// goes on with the old one until the new one has settled and is in all targets. The old one stays
// in the bundle until it expires.
//
// # Replicas
//
// All replicas serve, so all of them run this, the leader or not. They share the Secret, which is
// written on condition of the version that was read: one of them wins, the others find its
// generation. Replicas that want different names, while a new version of the manager is rolled out,
// each use the generations that have theirs.
//
// # Trade-offs
//
// There is no certificate authority: the API server trusts exactly these few certificates, so no
// key in the hub can sign another one that it would trust, and there is one thing to rotate, not
// two. Certificates don't pass through files, as they do with a rotator that relies on the kubelet
// to update a mounted Secret, which takes a minute or more. Who prefers cert-manager gives the
// manager files and lets cert-manager's cainjector fill in the caBundle; then this package isn't
// used.
package servingcert
