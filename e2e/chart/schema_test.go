package chart_test

import (
	"strings"
	"testing"

	"github.com/jobferry/jobferry/e2e/chart/charttest"
)

// Values that can't be meant are refused before anything is installed, by a message that names the
// value.
func TestValuesRefused(t *testing.T) {
	rows := map[string]struct {
		chart string
		set   string // as for helm --set
		want  []string
	}{
		"a name that is misspelled":      {hubChart, "replica=3", []string{"additional properties 'replica' not allowed"}},
		"a flag that is misspelled":      {hubChart, "config.workerQPS=3", []string{"'/config'", "'workerQPS' not allowed"}},
		"a flag of the other program":    {workerChart, "config.workerQps=3", []string{"'/config'", "'workerQps' not allowed"}},
		"no duration":                    {hubChart, "config.stuckTimeout=soon", []string{"'/config/stuckTimeout'", "does not match"}},
		"a duration without a unit":      {hubChart, "config.stuckTimeout=5", []string{"'/config/stuckTimeout'", "got number, want"}},
		"a number as text":               {hubChart, "replicas=two", []string{"'/replicas'", "got string, want integer"}},
		"a negative number":              {hubChart, "replicas=-1", []string{"'/replicas'", "minimum"}},
		"a log level that there isn't":   {hubChart, "config.logLevel=loud", []string{"'/config/logLevel'", "'error', 'info', 'debug'"}},
		"a mode that there isn't":        {hubChart, "admission.mode=policy", []string{"'/admission/mode'", "'Auto', 'Policy', 'Webhook', 'Off'"}},
		"a kind that can't be carried":   {hubChart, "carry.kinds={Role}", []string{"'/carry/kinds/0'", "'ConfigMap', 'Secret', 'Service', 'ServiceAccount'"}},
		"a digest that is a tag":         {hubChart, "image.digest=v1", []string{"'/image/digest'", "does not match"}},
		"a label that is a number":       {hubChart, "podLabels.a=1", []string{"'/podLabels/a'", "got number, want string"}},
		"a port out of range":            {workerChart, "networkPolicy.apiServerPorts={70000}", []string{"'/networkPolicy/apiServerPorts/0'", "maximum"}},
		"no PodDisruptionBudget at all":  {hubChart, "podDisruptionBudget.maxUnavailable=0", []string{"'/podDisruptionBudget/maxUnavailable'"}},
		"metrics scraped twice":          {hubChart, "monitoring.serviceMonitor.enabled=true,monitoring.podMonitor.enabled=true", []string{"choose one"}},
		"a monitor without its Service":  {hubChart, "monitoring.serviceMonitor.enabled=true,metrics.service.enabled=false", []string{"needs metrics.service.enabled"}},
		"a monitor without credentials":  {workerChart, "monitoring.podMonitor.enabled=true", []string{"set podMonitor.tokenSecret, or choose serviceMonitor"}},
		"an account of nobody's":         {hubChart, "serviceAccount.create=false", []string{"serviceAccount.name: say which one to use"}},
		"an account that is a user":      {workerChart, "impersonate=admin", []string{"'/impersonate'", "does not match"}},
		"an argument that is no flag":    {hubChart, "extraArgs={verbose}", []string{"'/extraArgs/0'", "does not match"}},
		"an origin that is no label":     {hubChart, "config.origin=eu/hub", []string{"'/config/origin'", "does not match"}},
		"a full name that is no name":    {hubChart, "fullnameOverride=Hub_1", []string{"'/fullnameOverride'", "does not match"}},
		"an alert that isn't Jobferry's": {hubChart, "monitoring.prometheusRule.disabled={Watchdog}", []string{"'/monitoring/prometheusRule/disabled/0'"}},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := charttest.TryHelm(t, template(row.chart, "--set", row.set)...)
			if err == nil {
				t.Fatal("it was accepted")
			}
			for _, want := range row.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error has no %q:\n%v", want, err)
				}
			}
		})
	}
}

// A hub that is too old is told so.
func TestOldHubRefused(t *testing.T) {
	args := append(template(hubChart), "--kube-version", "1.31.9")
	_, err := charttest.TryHelm(t, args...)
	if err == nil || !strings.Contains(err.Error(), "requires kubeVersion: >=1.32.0-0 which is incompatible with Kubernetes v1.31.9") {
		t.Errorf("error %v", err)
	}
}
