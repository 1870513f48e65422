package process

// --metrics-secure asks the cluster for the identity of a scraper, and whether it may read.
//
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	uberzap "go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// Main runs a program until a signal, and exits: with 0, or with 1 and one line that says why.
func Main(name string, run func(ctx context.Context, args []string) error) {
	err := run(ctrl.SetupSignalHandler(), os.Args[1:])
	if err != nil && !errors.Is(err, pflag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "%s: %s\n", name, OneLine(err))
		os.Exit(1)
	}
}

// Manager makes the controller-runtime manager of the program with its health checks, and sets up
// the log.
func (f *Flags) Manager(scheme *runtime.Scheme, newCache cache.NewCacheFunc, cached cache.Options) (ctrl.Manager, error) {
	logger, err := f.logger(os.Stderr)
	if err != nil {
		return nil, err
	}
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	config, err := f.Config()
	if err != nil {
		return nil, err
	}
	options := f.managerOptions()
	options.Scheme, options.NewCache, options.Cache = scheme, newCache, cached
	lock, err := f.newLock(config)
	if err != nil {
		return nil, err
	}
	options.LeaderElectionResourceLockInterface = lock
	config.Wrap(lock.term.guard) // after the lock has made its own clients
	mgr, err := ctrl.NewManager(config, options)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", f.Cluster, config.Host, err)
	}
	lock.LockConfig.EventRecorder = mgr.GetEventRecorderFor(lock.Identity()) //nolint:staticcheck // leader election knows no other
	return f.serve(mgr)
}

func (f *Flags) managerOptions() ctrl.Options {
	return ctrl.Options{
		Metrics:                       metricsserver.Options{BindAddress: off}, // see serve
		HealthProbeBindAddress:        off,
		PprofBindAddress:              f.profileAddress,
		LeaderElection:                f.leaderElect,
		LeaderElectionID:              f.Name,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &f.leaseDuration,
		RenewDeadline:                 &f.renewDeadline,
		RetryPeriod:                   &f.retryPeriod,
		GracefulShutdownTimeout:       &f.shutdownTimeout,
	}
}

var logLevels = []string{"error", "info", "debug"}

func (f *Flags) logger(out io.Writer) (logr.Logger, error) {
	var level zapcore.Level
	if err := level.UnmarshalText([]byte(f.logLevel)); err != nil || !slices.Contains(logLevels, f.logLevel) {
		return logr.Logger{}, fmt.Errorf("--log-level %q: must be one of %s", f.logLevel, strings.Join(logLevels, ", "))
	}
	options := []zap.Opts{zap.WriteTo(out), zap.Level(level), zap.StacktraceLevel(zapcore.DPanicLevel), zap.RawZapOpts(uberzap.WrapCore(withLazyValues))}
	readable := func(c *zapcore.EncoderConfig) { c.EncodeTime = zapcore.ISO8601TimeEncoder }
	switch f.logFormat {
	case "json":
		options = append(options, zap.JSONEncoder(readable))
	case "text":
		options = append(options, zap.ConsoleEncoder(readable))
	default:
		return logr.Logger{}, fmt.Errorf("--log-format %q: must be json or text", f.logFormat)
	}
	return zap.New(options...), nil
}
