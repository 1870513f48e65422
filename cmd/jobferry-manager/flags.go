package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"go.uber.org/zap/zapcore"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/component-base/version"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/jobferry/jobferry/pkg/manager"
)

// flags are the settings of the process.
type flags struct {
	kubeconfig     string
	context        string
	hubQPS         float32
	hubBurst       int
	metricsAddress string
	metricsSecure  bool
	healthAddress  string
	pprofAddress   string

	leaderElect     bool
	leaseDuration   time.Duration
	renewDeadline   time.Duration
	retryPeriod     time.Duration
	shutdownTimeout time.Duration

	logFormat string
	logLevel  string

	options manager.Options
}

func defaultFlags() *flags {
	return &flags{
		hubQPS: 1000, hubBurst: 2000,
		metricsAddress: ":8080", healthAddress: ":8081", pprofAddress: "0",
		leaderElect: true, leaseDuration: 15 * time.Second, renewDeadline: 10 * time.Second,
		retryPeriod: 2 * time.Second, shutdownTimeout: 20 * time.Second,
		logFormat: "json", logLevel: "info",
		options: manager.DefaultOptions(),
	}
}

// parse reads the arguments. The error is one line for the user, or
// pflag.ErrHelp.
func (f *flags) parse(args []string) error {
	set := pflag.NewFlagSet("jobferry-manager", pflag.ContinueOnError)
	set.SortFlags = false
	set.Usage = func() {
		fmt.Fprintf(os.Stdout, "jobferry-manager dispatches the Jobs of a hub cluster to worker clusters.\n\nFlags:\n%s", set.FlagUsages())
	}
	f.addHub(set)
	f.addServing(set)
	f.addLeaderElection(set)
	f.addWorkers(set)
	f.addTiming(set)
	showVersion := set.Bool("version", false, "print the version and exit")
	if err := set.Parse(args); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			return err
		}
		return fmt.Errorf("%w; see --help", err)
	}
	if set.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q; see --help", set.Arg(0))
	}
	if *showVersion {
		fmt.Println(version.Get().GitVersion)
		return pflag.ErrHelp
	}
	if err := f.options.Validate(); err != nil {
		return errors.New(strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return nil
}

func (f *flags) addHub(set *pflag.FlagSet) {
	set.StringVar(&f.kubeconfig, "kubeconfig", f.kubeconfig,
		"kubeconfig file of the hub; default: $KUBECONFIG, or the Pod's service account")
	set.StringVar(&f.context, "context", f.context, "context in the kubeconfig; default: its current context")
	set.StringVar(&f.options.Namespace, "namespace", f.options.Namespace,
		"namespace of the registration Secrets and of the leader election")
	set.StringVar((*string)(&f.options.Origin), "origin", "",
		"id of this hub in its workers; default: the UID of the hub's namespace kube-system")
	set.Float32Var(&f.hubQPS, "hub-qps", f.hubQPS, "requests per second to the hub's API server, at most")
	set.IntVar(&f.hubBurst, "hub-burst", f.hubBurst, "requests to the hub's API server at once, at most")
}

func (f *flags) addServing(set *pflag.FlagSet) {
	set.StringVar(&f.metricsAddress, "metrics-bind-address", f.metricsAddress, "address of /metrics; 0: none")
	set.BoolVar(&f.metricsSecure, "metrics-secure", f.metricsSecure,
		"serve /metrics by HTTPS, to those whom the hub authorizes")
	set.StringVar(&f.healthAddress, "health-probe-bind-address", f.healthAddress, "address of /healthz and /readyz; 0: none")
	set.StringVar(&f.pprofAddress, "pprof-bind-address", f.pprofAddress,
		"address of Go's profiles, under /debug/pprof, without any authentication; 0: none")
	set.StringVar(&f.logFormat, "log-format", f.logFormat, "json or text")
	set.StringVar(&f.logLevel, "log-level", f.logLevel, "error, info, debug")
	set.DurationVar(&f.shutdownTimeout, "shutdown-timeout", f.shutdownTimeout,
		"how long work that has begun may take after a signal to end")
}

func (f *flags) addLeaderElection(set *pflag.FlagSet) {
	set.BoolVar(&f.leaderElect, "leader-elect", f.leaderElect, "work only while holding the Lease jobferry-manager")
	set.DurationVar(&f.leaseDuration, "leader-elect-lease-duration", f.leaseDuration, "how long others wait before they take the Lease over")
	set.DurationVar(&f.renewDeadline, "leader-elect-renew-deadline", f.renewDeadline, "how long the leader tries to renew before it gives up")
	set.DurationVar(&f.retryPeriod, "leader-elect-retry-period", f.retryPeriod, "time between tries")
}

func (f *flags) addWorkers(set *pflag.FlagSet) {
	o := &f.options
	set.IntVar(&o.Concurrency, "concurrency", o.Concurrency, "Jobs worked on at a time")
	set.IntVar(&o.WorkerConcurrency, "worker-concurrency", o.WorkerConcurrency, "of those, how many may wait for one worker")
	c := &o.Connection
	set.Float32Var(&c.QPS, "worker-qps", 1000, "requests per second to each worker's API server, at most")
	set.IntVar(&c.Burst, "worker-burst", 2000, "requests to each worker's API server at once, at most")
	set.DurationVar(&c.DialTimeout, "worker-dial-timeout", 5*time.Second, "time-out of a connection to a worker")
	set.DurationVar(&c.RequestTimeout, "worker-request-timeout", 15*time.Second, "time-out of a request to a worker")
	set.DurationVar(&c.ProbeInterval, "worker-probe-interval", 10*time.Second, "time between two probes of a worker")
	set.DurationVar(&c.ProbeTimeout, "worker-probe-timeout", 5*time.Second, "time-out of a probe of a worker")
}

func (f *flags) addTiming(set *pflag.FlagSet) {
	t := &f.options.Timing
	set.DurationVar(&t.ProgressFloor, "progress-floor", t.ProgressFloor,
		"least time between two status writes of a Job that only report progress")
	set.DurationVar(&t.StuckNotice, "stuck-notice", t.StuckNotice,
		"how long a Job may have no running Pod before the worker's reason is shown")
	set.DurationVar(&t.StuckTimeout, "stuck-timeout", t.StuckTimeout,
		"how long a Job may have no running Pod before it's moved to another worker; only if none ever ran")
	set.DurationVar(&t.Recheck, "recheck", t.Recheck, "how often an unfinished Job is looked at without any event")
	set.DurationVar(&f.options.PassOver, "pass-over", f.options.PassOver, "how long a worker that can't take a Job is passed over for it")
}

// hubConfig finds the hub.
func (f *flags) hubConfig() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules,
		&clientcmd.ConfigOverrides{CurrentContext: f.context}).ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, errors.New("no hub: not in a Pod, and no kubeconfig; set --kubeconfig or $KUBECONFIG")
	}
	if err != nil {
		return nil, fmt.Errorf("hub's kubeconfig: %w", err)
	}
	config.QPS, config.Burst = f.hubQPS, f.hubBurst
	config.UserAgent = "jobferry-manager/" + version.Get().GitVersion
	return config, nil
}

func (f *flags) logger(out io.Writer) (logr.Logger, error) {
	var level zapcore.Level
	if err := level.UnmarshalText([]byte(f.logLevel)); err != nil {
		return logr.Logger{}, fmt.Errorf("--log-level %q: must be error, info or debug", f.logLevel)
	}
	options := []zap.Opts{zap.WriteTo(out), zap.Level(level), zap.StacktraceLevel(zapcore.DPanicLevel),
		func(o *zap.Options) { o.TimeEncoder = zapcore.ISO8601TimeEncoder }}
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
