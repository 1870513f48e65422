package process

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/util/version"
)

// Flags are the settings that all controllers have.
type Flags struct {
	// Name is the program's, for its Lease, its user agent and its errors.
	Name string
	// Cluster is the program's term for its cluster, such as hub.
	Cluster string
	// Namespace is that of the Lease.
	Namespace string
	// LeaseLabels are those of the Lease while this replica leads.
	LeaseLabels map[string]string
	// Impersonate is the user to make all requests as; empty: the one of the kubeconfig, or of the
	// Pod.
	Impersonate string

	kubeconfig, context string
	qps                 float32
	burst               int

	metricsAddress, healthAddress, profileAddress string
	metricsSecure                                 bool

	leaderElect                               bool
	leaseDuration, renewDeadline, retryPeriod time.Duration
	shutdownTimeout                           time.Duration

	logFormat, logLevel string
}

// Defaults returns the settings of a program without arguments.
func Defaults(name, cluster string) *Flags {
	return &Flags{
		Name: name, Cluster: cluster, Namespace: v1alpha1.SystemNamespace,
		qps: 1000, burst: 2000,
		metricsAddress: ":8080", healthAddress: ":8081", profileAddress: "0",
		leaderElect: true, leaseDuration: 15 * time.Second, renewDeadline: 10 * time.Second,
		retryPeriod: 2 * time.Second, shutdownTimeout: 20 * time.Second,
		logFormat: "json", logLevel: "info",
	}
}

// Parse reads the arguments, with the flags that add adds. It prints help and version, and returns
// pflag.ErrHelp for both. Any other error is one line for the user.
func (f *Flags) Parse(args []string, out io.Writer, summary string, add func(*pflag.FlagSet)) error {
	set := pflag.NewFlagSet(f.Name, pflag.ContinueOnError)
	set.SortFlags = false
	set.Usage = func() { fmt.Fprintf(out, "%s\n\nFlags:\n%s", summary, set.FlagUsages()) }
	f.addCluster(set)
	add(set)
	f.addServing(set)
	f.addLeaderElection(set)
	f.addLogs(set)
	showVersion := set.Bool("version", false, "print the version and exit")
	err := set.Parse(args)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return err
	case err != nil:
		return fmt.Errorf("%w; see --help", err)
	case set.NArg() > 0:
		return fmt.Errorf("unexpected argument %q; see --help", set.Arg(0))
	case *showVersion:
		fmt.Fprintln(out, version.Get())
		return pflag.ErrHelp
	default:
		return nil
	}
}

func (f *Flags) addCluster(set *pflag.FlagSet) {
	set.StringVar(&f.kubeconfig, "kubeconfig", f.kubeconfig,
		"kubeconfig file of the "+f.Cluster+"; default: $KUBECONFIG, or the Pod's service account")
	set.StringVar(&f.context, "context", f.context, "context in the kubeconfig; default: its current context")
	set.StringVar(&f.Namespace, "namespace", f.Namespace, "namespace of the program")
	set.Float32Var(&f.qps, "kube-api-qps", f.qps, "limit of requests per second to the "+f.Cluster+"'s API server")
	set.IntVar(&f.burst, "kube-api-burst", f.burst, "limit of requests at once to the "+f.Cluster+"'s API server")
}

func (f *Flags) addServing(set *pflag.FlagSet) {
	set.StringVar(&f.metricsAddress, "metrics-bind-address", f.metricsAddress, "address of /metrics; 0 disables it")
	set.BoolVar(&f.metricsSecure, "metrics-secure", f.metricsSecure,
		"serve /metrics by HTTPS, to clients that the "+f.Cluster+" authorizes")
	set.StringVar(&f.healthAddress, "health-probe-bind-address", f.healthAddress, "address of /healthz and /readyz; 0 disables them")
	set.StringVar(&f.profileAddress, "pprof-bind-address", f.profileAddress, "address of /debug/pprof; 0 disables it")
	set.DurationVar(&f.shutdownTimeout, "shutdown-timeout", f.shutdownTimeout,
		"how long work in progress may take after a signal")
}

func (f *Flags) addLeaderElection(set *pflag.FlagSet) {
	set.BoolVar(&f.leaderElect, "leader-elect", f.leaderElect, "reconcile only while holding the Lease "+f.Name)
	set.DurationVar(&f.leaseDuration, "leader-elect-lease-duration", f.leaseDuration,
		"how long other replicas wait before they acquire the Lease")
	set.DurationVar(&f.renewDeadline, "leader-elect-renew-deadline", f.renewDeadline,
		"how long the leader retries to renew the Lease before it exits")
	set.DurationVar(&f.retryPeriod, "leader-elect-retry-period", f.retryPeriod, "time between attempts")
}

func (f *Flags) addLogs(set *pflag.FlagSet) {
	set.StringVar(&f.logFormat, "log-format", f.logFormat, "format of the log: json or text")
	set.StringVar(&f.logLevel, "log-level", f.logLevel, "level of the log: error, info or debug")
}

// Config returns how the cluster is reached.
func (f *Flags) Config() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules,
		&clientcmd.ConfigOverrides{CurrentContext: f.context}).ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, fmt.Errorf("no %s: not in a Pod, and no kubeconfig; set --kubeconfig or $KUBECONFIG", f.Cluster)
	}
	if err != nil {
		return nil, fmt.Errorf("kubeconfig of the %s: %s", f.Cluster, OneLine(err))
	}
	config.QPS, config.Burst = f.qps, f.burst
	if f.Impersonate != "" {
		config.Impersonate = rest.ImpersonationConfig{UserName: f.Impersonate}
	}
	config.UserAgent = f.Name + "/" + version.Get()
	return config, nil
}

// OneLine formats an error as one line.
func OneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
