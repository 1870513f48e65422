package v1alpha1

// Types of a WorkerCluster's conditions.
const (
	// ConditionReady: the manager has a working connection to the worker.
	ConditionReady = "Ready"
	// ConditionSchedulable: new Jobs may be placed on the worker.
	ConditionSchedulable = "Schedulable"
	// ConditionLost: the worker has not been Ready for workerLostTimeout, and its Jobs continue
	// elsewhere. Unknown: it would be lost, but no worker is Ready, and the hub suspects itself.
	ConditionLost = "Lost"
	// ConditionFenced: if the worker is cut off, its embedded Job controller stops this hub's Jobs
	// before they continue elsewhere. Unknown: it hasn't answered.
	ConditionFenced = "Fenced"
	// ConditionExclusive: no other manager of this origin writes to the worker. False: there may be
	// one, or another one does and this one doesn't.
	ConditionExclusive = "Exclusive"
	// ConditionClockAgrees is False while the worker's clock is ahead of the hub's, or behind it, by
	// more than 5 s. A worker of which that was never so has no such condition.
	ConditionClockAgrees = "ClockAgrees"
	// ConditionTokenRenewed is False while the manager can't renew the worker's token, which expires.
	// A worker whose token the manager doesn't renew has no such condition.
	ConditionTokenRenewed = "TokenRenewed"
)

// Reasons of a WorkerCluster's conditions.
const (
	// ReasonConnected: Ready=True.
	ReasonConnected = "Connected"
	// ReasonConnecting: no answer yet since the manager or the connection started.
	ReasonConnecting = "Connecting"
	// ReasonSecretMissing: the registration Secret is gone.
	ReasonSecretMissing = "SecretMissing"
	// ReasonKubeconfigMissing: the Secret has no key "kubeconfig".
	ReasonKubeconfigMissing = "KubeconfigMissing"
	// ReasonKubeconfigInvalid: the kubeconfig can't be parsed, or has no usable context.
	ReasonKubeconfigInvalid = "KubeconfigInvalid"
	// ReasonKubeconfigRefused: the kubeconfig asks for what the manager won't do: run a plugin,
	// read files, skip TLS verification, or talk plain HTTP.
	ReasonKubeconfigRefused = "KubeconfigRefused"
	// ReasonUnreachable: the API server does not answer.
	ReasonUnreachable = "Unreachable"
	// ReasonUntrusted: the server's certificate doesn't prove that it is the cluster that the
	// kubeconfig means.
	ReasonUntrusted = "Untrusted"
	// ReasonUnauthorized: the API server refuses the credentials.
	ReasonUnauthorized = "Unauthorized"
	// ReasonForbidden: the credentials lack a permission that the manager needs.
	ReasonForbidden = "Forbidden"
	// ReasonAnswerTooLarge: an answer of the API server was larger than any that is true.
	ReasonAnswerTooLarge = "AnswerTooLarge"
	// ReasonAnswerEncoded: an answer of the API server was compressed, which nobody asked for.
	ReasonAnswerEncoded = "AnswerEncoded"
	// ReasonTooManyMirrors: the worker has as many Jobs of this hub as spec.maxMirrors allows
	// (Schedulable=False), or more than a quarter more (Ready=False).
	ReasonTooManyMirrors = "TooManyMirrors"
	// ReasonClusterChanged: the kubeconfig leads to another cluster than before.
	ReasonClusterChanged = "ClusterChanged"
	// ReasonRestored: the cluster's etcd was put back to an earlier state. All is read from it again.
	ReasonRestored = "Restored"
	// ReasonIsHub: the kubeconfig leads to the hub itself.
	ReasonIsHub = "IsHub"
	// ReasonDuplicate: the cluster is registered under another name, too.
	ReasonDuplicate = "DuplicateCluster"
	// ReasonSchedulable: Schedulable=True.
	ReasonSchedulable = "Schedulable"
	// ReasonCapacityUnknown: Schedulable=True, but what fits isn't checked, though spec.capacity
	// asks for it: nodes or Pods can't be watched.
	ReasonCapacityUnknown = "CapacityUnknown"
	// ReasonPartlyChecked: Schedulable=True, but some of what decides over Pods there isn't known,
	// such as quotas, or which nodes its autoscaler can add.
	ReasonPartlyChecked = "PartlyChecked"
	// ReasonCordoned: spec.cordoned is set.
	ReasonCordoned = "Cordoned"
	// ReasonNamespaceSelectorInvalid: spec.namespaceSelector can't be read, so no namespace matches.
	ReasonNamespaceSelectorInvalid = "NamespaceSelectorInvalid"
	// ReasonNotReady: the worker isn't Ready.
	ReasonNotReady = "NotReady"
	// ReasonDraining: spec.drain is set.
	ReasonDraining = "Draining"
	// ReasonLostTimeout: Lost=True.
	ReasonLostTimeout = "LostTimeout"
	// ReasonHubIsolated: Lost=Unknown: no worker is Ready. Nothing is moved.
	ReasonHubIsolated = "HubIsolated"
	// ReasonInTouch: Lost=False: the worker is Ready, or was a short while ago.
	ReasonInTouch = "InTouch"
	// ReasonFenceKept: Fenced=True.
	ReasonFenceKept = "LeaseKept"
	// ReasonNoFence: Fenced=False: there is no Lease in this worker, as its Jobs are run by its
	// built-in Job controller, or as it was removed.
	ReasonNoFence = "NoFence"
	// ReasonFenceTooLate: Fenced=False: the fence closes after the Jobs have moved.
	ReasonFenceTooLate = "FenceTooLate"
	// ReasonLeaseHeld: Exclusive=True.
	ReasonLeaseHeld = "LeaseHeld"
	// ReasonUnguarded: Exclusive=False: the manager may not write the Lease. It dispatches all the
	// same.
	ReasonUnguarded = "Unguarded"
	// ReasonHeldElsewhere: Exclusive=False: the manager of another hub of this origin holds the Lease.
	// Nothing is written to the worker, and no Job placed there.
	ReasonHeldElsewhere = "HeldElsewhere"
	// ReasonLeaseForbidden: Fenced=False: the credentials may not write the Lease.
	ReasonLeaseForbidden = "LeaseForbidden"
	// ReasonLeaseRefused: Fenced=False: the worker's API server doesn't take the Lease.
	ReasonLeaseRefused = "LeaseRefused"
	// ReasonUnanswered: Fenced=Unknown: no embedded Job controller has answered to the Lease.
	ReasonUnanswered = "Unanswered"
	// ReasonClockAgrees: ClockAgrees=True.
	ReasonClockAgrees = "ClockAgrees"
	// ReasonClockAhead: ClockAgrees=False: the worker's clock is ahead.
	ReasonClockAhead = "ClockAhead"
	// ReasonClockBehind: ClockAgrees=False: the worker's clock is behind.
	ReasonClockBehind = "ClockBehind"
	// ReasonRemoving: the registration Secret is being deleted.
	ReasonRemoving = "Removing"
)
