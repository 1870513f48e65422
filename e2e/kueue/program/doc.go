// Package program installs Kueue in clusters of the rig, and runs its real manager there.
//
//	CRDs, webhooks ──> cluster's API server <──> Kueue (a component of the cluster; Kill and Start work)
//	(from Kueue's module)     │                    ▲
//	Service kueue-webhook-service ─────────────────┘ an ExternalName: localhost
//	Secret kueue-webhook-server-cert ──> files, as a kubelet would mount them
//
// Kueue makes and injects its own certificates, as in an installation by its manifests. The rig
// gives them to the process as files, as a kubelet would. The CRDs and webhooks are those of the
// module that the program is built from, with another port of the webhooks.
package program
