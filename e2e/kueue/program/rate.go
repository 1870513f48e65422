package program

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/jobferry/jobferry/e2e/rig/binaries"
)

// clientOfWorker is the statement by which MultiKueue makes the configuration of its client of a
// worker cluster. No option of Kueue changes that client's rate limit: it's client-go's default, 5
// requests per second.
const clientOfWorker = "return clientcmd.RESTConfigFromKubeConfig(c.Kubeconfig)"

// WithRateInWorkers builds Kueue's manager into a folder, with another rate limit of MultiKueue's
// clients of worker clusters, in requests per second. Nothing else differs from the release. It
// returns the program and Kueue's version.
func WithRateInWorkers(ctx context.Context, folder string, perSecond int) (program, version string, err error) {
	module, err := binaries.ModuleDir(ctx, "kueue", modulePath)
	if err != nil {
		return "", "", err
	}
	source := filepath.Join(folder, "source")
	if err := os.CopyFS(source, os.DirFS(module)); err != nil {
		return "", "", err
	}
	file := filepath.Join(source, "pkg", "controller", "admissionchecks", "multikueue", "multikueuecluster.go")
	content, err := os.ReadFile(file)
	if err != nil {
		return "", "", err
	}
	if n := strings.Count(string(content), clientOfWorker); n != 1 {
		return "", "", fmt.Errorf("%s has %q %d times, not once: see what MultiKueue's clients are made by now", file, clientOfWorker, n)
	}
	limited := fmt.Sprintf("limited, err := clientcmd.RESTConfigFromKubeConfig(c.Kubeconfig)\n\tif err == nil {\n"+
		"\t\tlimited.QPS, limited.Burst = %d, %d\n\t}\n\treturn limited, err", perSecond, 2*perSecond)
	if err := os.WriteFile(file, []byte(strings.Replace(string(content), clientOfWorker, limited, 1)), 0o600); err != nil {
		return "", "", err
	}
	program = filepath.Join(folder, binaries.Kueue)
	_, version, _ = strings.Cut(filepath.Base(module), "@")
	return program, version, binaries.BuildReplaced(ctx, binaries.Kueue, program, modulePath, source)
}
