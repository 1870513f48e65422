package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"go.uber.org/zap/zapcore"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/component-base/version"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/jobferry/jobferry/pkg/worker"
)

// flags are the settings of the process.
type flags struct {
	kubeconfig, context, namespace string
	qps                            float32
	burst                          int
	metricsAddress, healthAddress  string
	metricsSecure                  bool

	leaderElect                               bool
	leaseDuration, renewDeadline, retryPeriod time.Duration
	shutdownTimeout                           time.Duration

	logFormat, logLevel string

	dropIn  bool
	options worker.Options
}

func defaultFlags() *flags {
	options := worker.DefaultOptions()
	options.TTL = true
	return &flags{
		namespace: "jobferry-system",
		qps:       1000, burst: 2000,
		metricsAddress: ":8080", healthAddress: ":8081",
		leaderElect: true, leaseDuration: 15 * time.Second, renewDeadline: 10 * time.Second,
		retryPeriod: 2 * time.Second, shutdownTimeout: 20 * time.Second,
		logFormat: "json", logLevel: "info",
		options: options,
	}
}

// parse reads the arguments. The error is one line for the user, or
// pflag.ErrHelp.
func (f *flags) parse(args []string, out io.Writer) error {
	set := pflag.NewFlagSet("jobferry-worker", pflag.ContinueOnError)
	set.SortFlags = false
	set.Usage = func() {
		fmt.Fprintf(out, "jobferry-worker runs the Jobs of a cluster that no built-in Job controller runs.\n\nFlags:\n%s", set.FlagUsages())
	}
	f.addCluster(set)
	f.addServing(set)
	f.addLeaderElection(set)
	f.addJobs(set)
	showVersion := set.Bool("version", false, "print the version and exit")
	if err := set.Parse(args); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			return err
		}
		return fmt.Errorf("%w; see --help", err)
	}
	switch {
	case set.NArg() > 0:
		return fmt.Errorf("unexpected argument %q; see --help", set.Arg(0))
	case *showVersion:
		fmt.Fprintln(out, version.Get().GitVersion)
		return pflag.ErrHelp
	case f.dropIn && (set.Changed("managed-by") || set.Changed("tracking-finalizer")):
		return errors.New("--drop-in chooses --managed-by and --tracking-finalizer: don't set them as well")
	case f.dropIn:
		f.options = f.options.DropIn()
	}
	if err := f.options.Validate(); err != nil {
		return errors.New(strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return nil
}

func (f *flags) addCluster(set *pflag.FlagSet) {
	set.StringVar(&f.kubeconfig, "kubeconfig", f.kubeconfig, "kubeconfig file of the cluster; default: $KUBECONFIG, or the Pod's service account")
	set.StringVar(&f.context, "context", f.context, "context in the kubeconfig; default: its current context")
	set.StringVar(&f.namespace, "namespace", f.namespace, "namespace of the leader election's Lease")
	set.Float32Var(&f.qps, "kube-api-qps", f.qps, "requests per second to the API server, at most")
	set.IntVar(&f.burst, "kube-api-burst", f.burst, "requests to the API server at once, at most")
}

func (f *flags) addServing(set *pflag.FlagSet) {
	set.StringVar(&f.metricsAddress, "metrics-bind-address", f.metricsAddress, "address of /metrics; 0: none")
	set.BoolVar(&f.metricsSecure, "metrics-secure", f.metricsSecure, "serve /metrics by HTTPS, to those whom the cluster authorizes")
	set.StringVar(&f.healthAddress, "health-probe-bind-address", f.healthAddress, "address of /healthz and /readyz; 0: none")
	set.StringVar(&f.logFormat, "log-format", f.logFormat, "json or text")
	set.StringVar(&f.logLevel, "log-level", f.logLevel, "error, info, debug")
	set.DurationVar(&f.shutdownTimeout, "shutdown-timeout", f.shutdownTimeout, "how long work that has begun may take after a signal to end")
}

func (f *flags) addLeaderElection(set *pflag.FlagSet) {
	set.BoolVar(&f.leaderElect, "leader-elect", f.leaderElect, "work only while holding the Lease jobferry-worker")
	set.DurationVar(&f.leaseDuration, "leader-elect-lease-duration", f.leaseDuration, "how long others wait before they take the Lease over")
	set.DurationVar(&f.renewDeadline, "leader-elect-renew-deadline", f.renewDeadline, "how long the leader tries to renew before it gives up")
	set.DurationVar(&f.retryPeriod, "leader-elect-retry-period", f.retryPeriod, "time between tries")
}

func (f *flags) addJobs(set *pflag.FlagSet) {
	o := &f.options
	set.BoolVar(&f.dropIn, "drop-in", f.dropIn,
		"take the built-in controller's place: run Jobs without spec.managedBy, with its finalizer and its names of metrics; only where it doesn't run")
	set.StringArrayVar(&o.ManagedBy, "managed-by", o.ManagedBy, `value of spec.managedBy whose Jobs are run, may be given more than once; "" stands for Jobs without it`)
	set.StringVar(&o.TrackingFinalizer, "tracking-finalizer", o.TrackingFinalizer, "finalizer on Pods that aren't counted yet")
	set.IntVar(&o.Concurrency, "concurrent-job-syncs", o.Concurrency, "Jobs synced at a time")
	set.DurationVar(&o.PodFailureBackoff, "pod-failure-backoff", o.PodFailureBackoff, "delay after a first failed Pod; doubles with each further one")
	set.DurationVar(&o.MaxPodFailureBackoff, "max-pod-failure-backoff", o.MaxPodFailureBackoff, "where doubling stops")
	set.DurationVar(&o.SyncBatchPeriod, "sync-batch-period", o.SyncBatchPeriod, "how long Pod events of a Job are collected before it is synced")
	set.IntVar(&o.MaxUncountedPods, "max-uncounted-pods", o.MaxUncountedPods, "Pods listed in a Job's status at a time until they are counted")
	set.IntVar(&o.MaxPodCreateDeletePerSync, "max-pod-create-delete-per-sync", o.MaxPodCreateDeletePerSync, "Pods a Job may create or delete before others get their turn")
	set.BoolVar(&o.TTL, "ttl", o.TTL, "delete finished Jobs after their ttlSecondsAfterFinished")
}

// clusterConfig finds the cluster.
func (f *flags) clusterConfig() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules,
		&clientcmd.ConfigOverrides{CurrentContext: f.context}).ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, errors.New("no cluster: not in a Pod, and no kubeconfig; set --kubeconfig or $KUBECONFIG")
	}
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	config.QPS, config.Burst = f.qps, f.burst
	config.UserAgent = "jobferry-worker/" + version.Get().GitVersion
	return config, nil
}

var logLevels = []string{"error", "info", "debug"}

func (f *flags) logger(out io.Writer) (logr.Logger, error) {
	var level zapcore.Level
	if err := level.UnmarshalText([]byte(f.logLevel)); err != nil || !slices.Contains(logLevels, f.logLevel) {
		return logr.Logger{}, fmt.Errorf("--log-level %q: must be %s", f.logLevel, strings.Join(logLevels, ", "))
	}
	options := []zap.Opts{zap.WriteTo(out), zap.Level(level), zap.StacktraceLevel(zapcore.DPanicLevel)}
	switch f.logFormat {
	case "json":
		options = append(options, zap.JSONEncoder())
	case "text":
		options = append(options, zap.ConsoleEncoder())
	default:
		return logr.Logger{}, fmt.Errorf("--log-format %q: must be json or text", f.logFormat)
	}
	return zap.New(options...), nil
}
