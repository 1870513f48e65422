package process

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

func TestParse(t *testing.T) {
	rows := map[string]struct {
		args []string
		want string // part of the error; empty: none
	}{
		"no arguments":         {nil, ""},
		"a flag of its own":    {[]string{"--speed", "9"}, ""},
		"a flag of all":        {[]string{"--leader-elect=false"}, ""},
		"an unknown flag":      {[]string{"--bogus"}, "unknown flag: --bogus; see --help"},
		"an invalid value":     {[]string{"--shutdown-timeout", "soon"}, "shutdown-timeout"},
		"words without a flag": {[]string{"now"}, `unexpected argument "now"; see --help`},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			err := Defaults("ferry", "hub").Parse(row.args, &bytes.Buffer{}, "", func(set *pflag.FlagSet) { set.Int("speed", 1, "") })
			if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
				t.Errorf("error %v, want %q", err, row.want)
			}
			if err != nil && strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %q", err)
			}
		})
	}
}

func TestHelpAndVersionAreAnswers(t *testing.T) {
	for _, arg := range []string{"--help", "--version"} {
		var out bytes.Buffer
		err := Defaults("ferry", "hub").Parse([]string{arg}, &out, "ferry ferries.", func(*pflag.FlagSet) {})
		if !errors.Is(err, pflag.ErrHelp) || out.Len() == 0 {
			t.Errorf("%s: %v, printed %q", arg, err, out.String())
		}
	}
}

// Requests are made as another user if one is set.
func TestImpersonation(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: "https://127.0.0.1:1"}
	config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c"}
	config.CurrentContext = "c"
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	for _, user := range []string{"", "system:serviceaccount:kube-system:job-controller"} {
		f := Defaults("ferry", "hub")
		f.kubeconfig, f.Impersonate = file, user
		if got, err := f.Config(); err != nil || got.Impersonate.UserName != user {
			t.Errorf("as %q: %v", user, err)
		}
	}
}

func TestConfigSaysWhatIsMissing(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("HOME", t.TempDir())
	if _, err := Defaults("ferry", "hub").Config(); err == nil || !strings.Contains(err.Error(), "set --kubeconfig or $KUBECONFIG") {
		t.Errorf("error %v", err)
	}
	f := Defaults("ferry", "hub")
	f.kubeconfig = "/no/such/file"
	if _, err := f.Config(); err == nil || !strings.Contains(err.Error(), "kubeconfig of the hub") {
		t.Errorf("error %v", err)
	}
}

func TestLoggerTakesTheFlags(t *testing.T) {
	rows := map[string]struct {
		format, level string
		fails         bool
		shows         string
	}{
		"json":         {"json", "info", false, `"msg":"hello"`},
		"text":         {"text", "info", false, "hello"},
		"quiet":        {"json", "error", false, ""},
		"no format":    {"xml", "info", true, ""},
		"no level":     {"json", "loud", true, ""},
		"hidden level": {"json", "panic", true, ""},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			f := Defaults("ferry", "hub")
			f.logFormat, f.logLevel = row.format, row.level
			var out bytes.Buffer
			logger, err := f.logger(&out)
			if (err != nil) != row.fails {
				t.Fatalf("error %v", err)
			}
			logger.Info("hello")
			if got := out.String(); (row.shows == "") != (got == "") || !strings.Contains(got, row.shows) {
				t.Errorf("logged %q, want %q", got, row.shows)
			}
		})
	}
}
