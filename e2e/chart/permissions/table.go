package permissions

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// Part is a role: what is given together.
type Part string

// Parts of the charts.
const (
	Manager      Part = "manager"
	Carry        Part = "carry"
	Subresources Part = "subresources"
	Pods         Part = "pods"
	PodsCert     Part = "pods-certificate"
	Admission    Part = "admission"
	Kueue        Part = "kueue"
	MetricsAuth  Part = "metrics-auth"
	Worker       Part = "worker"
)

// Roles that aren't parts of a program, or only by choice: see users, and dropIn.
const (
	View          Part = "view"
	Edit          Part = "edit"
	Admin         Part = "admin"
	MetricsReader Part = "metrics-reader"
	KueueSecrets  Part = "kueue-secrets"
	DropIn        Part = "drop-in"
)

// Parts lists all parts of the programs.
func Parts() []Part {
	return []Part{Manager, Carry, Subresources, Pods, PodsCert, Admission, Kueue, MetricsAuth, Worker}
}

// Home stands for the namespace that the program is installed in.
const Home = v1alpha1.SystemNamespace

// Row is rights of one kind, with their reason.
type Row struct {
	Part Part
	// Namespace that they hold in; empty: all.
	Namespace string
	Group     string
	Resource  string
	// Names are the only objects they're about; none: all.
	Names []string
	Verbs []string
	Why   string
	// Unseen are verbs that no run is sure to use, and why.
	Unseen map[string]string
}

// Right is one verb on one resource, or on one path that is none.
type Right struct {
	Namespace, Group, Resource, Name, Verb string
}

// String says a right in one line, such as "get batch/jobs in jobferry-system".
func (r Right) String() string {
	text := r.Verb + " " + strings.TrimPrefix(r.Group+"/"+r.Resource, "/")
	if r.Name != "" {
		text += " " + r.Name
	}
	if r.Namespace != "" {
		text += " in " + r.Namespace
	}
	return text
}

// Of selects the rows of a part.
func Of(part Part) []Row {
	return slices.DeleteFunc(slices.Clone(table), func(r Row) bool { return r.Part != part })
}

// Rights are those that rows give.
func Rights(rows []Row) map[Right]bool {
	rights := map[Right]bool{}
	for _, row := range rows {
		for _, verb := range row.Verbs {
			for _, name := range names(row.Names) {
				rights[Right{row.Namespace, row.Group, row.Resource, name, verb}] = true
			}
		}
	}
	return rights
}

// Granted are the rights that the rules of a role give.
func Granted(namespace string, rules []rbacv1.PolicyRule) map[Right]bool {
	rights := map[Right]bool{}
	for _, rule := range rules {
		for _, url := range rule.NonResourceURLs {
			for _, verb := range rule.Verbs {
				rights[Right{Resource: url, Verb: verb}] = true
			}
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, name := range names(rule.ResourceNames) {
					for _, verb := range rule.Verbs {
						rights[Right{namespace, group, resource, name, verb}] = true
					}
				}
			}
		}
	}
	return rights
}

// names of the objects that a rule is about; the empty one stands for all.
func names(of []string) []string {
	if len(of) == 0 {
		return []string{""}
	}
	return of
}
