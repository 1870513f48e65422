package main

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/jobferry/jobferry/pkg/manager"
	"github.com/jobferry/jobferry/pkg/manager/admission"
	"github.com/jobferry/jobferry/pkg/manager/clusters"
)

func addWorkers(set *pflag.FlagSet, o *manager.Options) {
	set.StringVar((*string)(&o.Origin), "origin", "",
		"id of this hub in its workers; default: the UID of the hub's namespace kube-system")
	set.IntVar(&o.Concurrency, "concurrency", o.Concurrency, "number of Jobs that are reconciled at a time")
	set.IntVar(&o.WorkerConcurrency, "worker-concurrency", o.WorkerConcurrency, "how many of these reconciles can wait for one worker")
	set.Var(&o.HubJobs.PerNamespace, "job-memory-per-namespace",
		"how much memory the Jobs of a namespace may take; the manager reads the others again when it needs them")
	c := &o.Connection
	set.Float32Var(&c.QPS, "worker-qps", 1000, "limit of requests per second to each worker's API server")
	set.IntVar(&c.Burst, "worker-burst", 2000, "limit of requests at once to each worker's API server")
	set.DurationVar(&c.DialTimeout, "worker-dial-timeout", 5*time.Second, "timeout of connecting to a worker")
	set.DurationVar(&c.RequestTimeout, "worker-request-timeout", 15*time.Second, "timeout of a request to a worker")
	set.DurationVar(&c.ProbeInterval, "worker-probe-interval", 10*time.Second, "time between two probes of a worker")
	set.DurationVar(&c.WorkerLostTimeout, "worker-lost-timeout", clusters.DefaultWorkerLostTimeout,
		"how long a worker may be not Ready before its Jobs move to other workers; spec.workerLostTimeout of its WorkerCluster takes precedence")
	set.DurationVar(&c.ProbeTimeout, "worker-probe-timeout", 5*time.Second, "timeout of a probe of a worker")
	set.DurationVar(&o.Fence.Duration, "fence-lease-duration", 40*time.Second,
		"duration, in whole seconds, of the Lease in each worker with the embedded Job controller; the manager renews it four times in that time")
}

func addNamespaces(set *pflag.FlagSet, o *manager.Options) {
	set.BoolVar(&o.DispatchAllNamespaces, "dispatch-all-namespaces", o.DispatchAllNamespaces,
		"also dispatch Jobs that name the dispatcher in namespaces without the label jobferry.dev/dispatch; never those of kube-* and of the manager's namespace")
	set.StringSliceVar((*[]string)(&o.Groups), "group-kinds", o.Groups,
		"kinds of objects, each as KIND.GROUP, whose Jobs run in one worker")
	set.StringVar((*string)(&o.DefaultPodSecurity), "default-pod-security", string(o.DefaultPodSecurity),
		"Pod Security level of namespaces created in workers, unless the hub's namespace has its own: privileged, baseline, restricted, or empty for no label")
}

func addHubKeys(set *pflag.FlagSet, o *manager.Options) {
	set.StringSliceVar((*[]string)(&o.HubKeys), "keep-on-hub", o.HubKeys,
		"keys of labels and annotations, or domains with all their keys, that aren't copied to workers; docs/reference/jobs.md lists those that never are")
	set.StringSliceVar((*[]string)(&o.CarryAccountAnnotations), "carry-service-account-annotations", o.CarryAccountAnnotations,
		"keys of annotations, or domains with all their keys, that are copied to workers with ServiceAccounts: whoever writes ServiceAccounts on the hub then asks for these rights there")
}

func addTiming(set *pflag.FlagSet, o *manager.Options) {
	t := &o.Timing
	set.DurationVar(&t.ProgressFloor, "progress-floor", t.ProgressFloor,
		"least time between two status writes of a Job that only report progress; longer while the hub is busy, unless it's 0")
	set.DurationVar(&t.StuckNotice, "stuck-notice", t.StuckNotice,
		"how long a Job may have no Pod before an event shows the worker's reason; at most 2s if the worker says why its Pods can't start")
	set.DurationVar(&t.StuckTimeout, "stuck-timeout", t.StuckTimeout,
		"how long a Job may have no running Pod before it moves to another worker; the Job's annotation and the WorkerCluster's podStartTimeout take precedence")
	set.DurationVar(&t.ReleaseTimeout, "release-timeout", t.ReleaseTimeout,
		"how long, in addition to the Pods' grace period, the hub waits until a worker has removed the mirror of a Job that is deleted or moved")
	set.DurationVar(&t.Recheck, "recheck", t.Recheck, "how often an unfinished Job is reconciled without any event")
	set.DurationVar(&o.PassOver, "pass-over", o.PassOver, "how long the manager doesn't try a worker again for a Job that the worker can't run")
}

func addKueue(set *pflag.FlagSet, o *manager.Options) {
	k := &o.Kueue
	set.BoolVar(&k.Disabled, "kueue-disabled", k.Disabled,
		"ignore Kueue: AdmissionChecks of controller jobferry.dev/dispatcher aren't reconciled, even if Kueue is installed")
	set.StringVar(&k.Namespace, "kueue-namespace", k.Namespace,
		"Kueue's namespace, where MultiKueueClusters have their Secrets")
	set.DurationVar(&k.RetryAfter, "kueue-retry-after", k.RetryAfter,
		"how long a Job that fits on no worker keeps its quota")
	set.DurationVar(&k.RequeueAfter, "kueue-requeue-after", k.RequeueAfter,
		"how long a Job whose quota was released stays out of the queue; this time doubles with each release")
	set.DurationVar(&k.MaxRequeueAfter, "kueue-max-requeue-after", k.MaxRequeueAfter,
		"longest time that a Job whose quota was released stays out of the queue")
}

func addTracing(set *pflag.FlagSet, o *manager.Options) {
	set.StringVar(&o.Tracing.Endpoint, "tracing-endpoint", o.Tracing.Endpoint,
		"OpenTelemetry collector that gets the traces of Jobs, such as localhost:4317, by OTLP over gRPC without TLS; default: no traces")
	set.Int32Var(&o.Tracing.SamplingRatePerMillion, "tracing-sampling-rate-per-million", o.Tracing.SamplingRatePerMillion,
		"how many Jobs per million have traces")
}

func addAdmission(set *pflag.FlagSet, o *admission.Options) {
	set.BoolVar(&o.Enabled, "admission-webhook", o.Enabled,
		"serve the webhook that sets managedBy on new Jobs of namespaces with the label jobferry.dev/dispatch=enabled; for hubs before 1.36")
	set.StringVar(&o.BindAddress, "admission-webhook-bind-address", o.BindAddress, "address of the admission webhook")
	set.StringVar(&o.Service, "admission-webhook-service", o.Service, "Service by which the hub's API server calls the webhook")
	set.StringVar(&o.CertDir, "admission-webhook-cert-dir", o.CertDir,
		"folder with tls.crt and tls.key of the webhook; default: the manager issues certificates and injects their CA")
	set.DurationVar(&o.CertLifetime, "admission-webhook-cert-lifetime", o.CertLifetime,
		"lifetime of certificates that the manager issues; it replaces them in the last third")
}

func addPods(set *pflag.FlagSet, o *manager.PodsOptions) {
	set.BoolVar(&o.Enabled, "pods", o.Enabled,
		"show the Pods of Jobs on the hub, in namespaces with the label jobferry.dev/pods=enabled, and serve their logs and commands as kubelets do")
	set.StringVar(&o.Address, "pods-address", o.Address, "with --pods: IP address at which the hub's API server reaches this replica")
	set.Int32Var(&o.Port, "pods-port", o.Port, "with --pods: port of that address")
	set.BoolVar(&o.RequestCertificate, "pods-request-certificate", o.RequestCertificate,
		"with --pods: request the certificate of that port from the hub's signer kubernetes.io/kubelet-serving; somebody must approve the request. Until then, and by default, the certificate is self-signed")
}
