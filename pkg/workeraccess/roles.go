package workeraccess

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// ClusterRules are the rules that hold in all namespaces, for a ClusterRole.
func ClusterRules(from []Rule) []rbacv1.PolicyRule { return policies(from, "") }

// NamespaceRules are the rules that hold in Jobferry's own namespace only, for a Role there. There
// may be none.
func NamespaceRules(from []Rule) []rbacv1.PolicyRule { return policies(from, v1alpha1.SystemNamespace) }

func policies(from []Rule, namespace string) []rbacv1.PolicyRule {
	var selected []rbacv1.PolicyRule
	for _, r := range from {
		if r.Namespace == namespace {
			selected = append(selected, r.policy())
		}
	}
	return selected
}

func (r Rule) policy() rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{r.Group}, Resources: r.Resources, ResourceNames: r.Names, Verbs: r.Verbs}
}
