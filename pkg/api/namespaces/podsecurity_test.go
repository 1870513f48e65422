package namespaces_test

import (
	"maps"
	"testing"

	"github.com/jobferry/jobferry/pkg/api/namespaces"
)

func TestPodSecurityLabels(t *testing.T) {
	const enforce, warn, version = "pod-security.kubernetes.io/enforce", "pod-security.kubernetes.io/warn", "pod-security.kubernetes.io/enforce-version"
	rows := map[string]struct {
		level     namespaces.PodSecurity
		hub, want map[string]string
	}{
		"the default":               {namespaces.Baseline, nil, map[string]string{enforce: "baseline"}},
		"no default":                {"", map[string]string{"a": "b"}, map[string]string{}},
		"the hub's":                 {namespaces.Baseline, map[string]string{enforce: "restricted", version: "v1.33", "a": "b"}, map[string]string{enforce: "restricted", version: "v1.33"}},
		"the hub's is weaker":       {namespaces.Baseline, map[string]string{enforce: "privileged"}, map[string]string{enforce: "privileged"}},
		"the hub only warns":        {namespaces.Restricted, map[string]string{warn: "baseline"}, map[string]string{warn: "baseline", enforce: "restricted"}},
		"the hub's, and no default": {"", map[string]string{enforce: "baseline"}, map[string]string{enforce: "baseline"}},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			if got := row.level.Labels(row.hub); !maps.Equal(got, row.want) {
				t.Errorf("got %v, want %v", got, row.want)
			}
		})
	}
}

func TestPodSecurityValidate(t *testing.T) {
	for level, valid := range map[namespaces.PodSecurity]bool{
		"": true, "privileged": true, "baseline": true, "restricted": true, "Baseline": false, "none": false,
	} {
		if err := level.Validate(); (err == nil) != valid {
			t.Errorf("%q: %v", level, err)
		}
	}
}
