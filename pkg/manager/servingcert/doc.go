// Package servingcert makes and rotates the certificate of what the manager serves to the hub's API
// server (its admission webhook, its aggregated API), and injects it as caBundle.
//
//	Secret ─────────┐                                ┌─▶ Secret: a new generation, the expired ones gone
//	webhook config ─┼─▶ gather ─▶ decide ─▶ apply ───┼─▶ webhook config, APIService: caBundle
//	APIService ─────┘             (pure)             └─▶ this process: what GetCertificate returns
//
// # Words
//
//	generation  a self-signed serving certificate with its key: one entry of the Secret
//	bundle      the certificates of all generations that haven't expired: the caBundle
//	target      an object with a caBundle
//	settled     a generation that has been in the Secret for Options.Settle
//
// # Rotation without a failed request
//
// A new generation is trusted before it's served. It's written to the Secret when the last third of
// its predecessor's life begins. Every replica injects the bundle of both into the targets, and
// serves the old one until the new one has settled and is in all targets. The old one stays in the
// bundle until it expires.
//
// # Replicas
//
// All replicas serve, so all of them run this, the leader or not. They share the Secret. One of
// them writes it, and the others find its generation. During a rollout, replicas may want different
// names: each uses the generations that have its names.
//
// # Writes
//
// The Secret and the targets are written by merge patches with the resourceVersion that was read. A
// conflict isn't an error: the watch triggers the next reconcile.
//
// # Trade-offs
//
// There is no certificate authority: the API server trusts exactly these few certificates. So no
// key on the hub can sign another one that it would trust, and there is one thing to rotate, not
// two. The certificates aren't files: the kubelet takes a minute or more to update a mounted
// Secret. Users of cert-manager give the manager files, and let cert-manager's cainjector set the
// caBundle; then this package isn't used.
//
// github.com/open-policy-agent/cert-controller (v0.16.0) doesn't replace this package: its caBundle
// has one CA, which it overwrites together with the serving certificate, so that requests fail
// until the API server has seen the new CA. It also keeps the CA's key in the Secret, and serves
// only what the kubelet has mounted as files.
package servingcert
