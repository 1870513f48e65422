package namespaces

import (
	"fmt"
	"slices"
	"strings"
)

// PodSecurity is a level of the Pod Security Standards; empty: none.
type PodSecurity string

// The levels, from the least to the most restrictive.
const (
	Privileged PodSecurity = "privileged"
	Baseline   PodSecurity = "baseline"
	Restricted PodSecurity = "restricted"
)

// The labels of Pod Security admission on namespaces.
const (
	podSecurityPrefix  = "pod-security.kubernetes.io/"
	podSecurityEnforce = podSecurityPrefix + "enforce"
)

// Validate reports a level that there isn't.
func (p PodSecurity) Validate() error {
	if p == "" || slices.Contains([]PodSecurity{Privileged, Baseline, Restricted}, p) {
		return nil
	}
	return fmt.Errorf("default Pod Security: %q is no level: set it to %s, %s or %s, or leave it empty for none",
		p, Privileged, Baseline, Restricted)
}

// Labels are those of Pod Security for a namespace that is created in a worker: the labels of its
// namesake on the hub. If these enforce no level, it's this one.
func (p PodSecurity) Labels(hub map[string]string) map[string]string {
	labels := map[string]string{}
	for key, value := range hub {
		if strings.HasPrefix(key, podSecurityPrefix) {
			labels[key] = value
		}
	}
	if _, enforced := labels[podSecurityEnforce]; !enforced && p != "" {
		labels[podSecurityEnforce] = string(p)
	}
	return labels
}
