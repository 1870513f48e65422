package workeraccess_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/workeraccess"
)

// Every setting brings the rules that it needs, and no others.
func TestFor(t *testing.T) {
	least := workeraccess.Settings{Capacity: v1alpha1.CapacityUnlimited}
	for name, tc := range map[string]struct {
		edit func(*workeraccess.Settings)
		want []string
	}{
		"embedded":   {func(s *workeraccess.Settings) { s.JobController = v1alpha1.JobControllerEmbedded }, []string{"leases"}},
		"expires":    {func(s *workeraccess.Settings) { s.Expires = true }, []string{"serviceaccounts/token"}},
		"namespaces": {func(s *workeraccess.Settings) { s.CreateNamespaces = true }, []string{"namespaces"}},
		"capacity": {func(s *workeraccess.Settings) { s.Capacity = "" }, []string{"deviceclasses", "limitranges", "namespaces", "nodes", "pods", "priorityclasses",
			"resourceclaims", "resourceclaimtemplates", "resourcequotas", "resourceslices", "runtimeclasses"}},
		"logs":   {func(s *workeraccess.Settings) { s.Logs = true }, []string{"pods", "pods/log"}},
		"exec":   {func(s *workeraccess.Settings) { s.Exec = true }, []string{"pods", "pods/attach", "pods/exec", "pods/portforward"}},
		"delete": {func(s *workeraccess.Settings) { s.Delete = true }, []string{"pods"}},
		"config maps": {func(s *workeraccess.Settings) { s.Carry = []v1alpha1.CarriedKind{v1alpha1.CarryConfigMaps} },
			[]string{"configmaps"}},
		"secrets and accounts": {func(s *workeraccess.Settings) {
			s.Carry = []v1alpha1.CarriedKind{v1alpha1.CarryServiceAccounts, v1alpha1.CarrySecrets}
		}, []string{"secrets", "serviceaccounts"}},
	} {
		t.Run(name, func(t *testing.T) {
			with := least
			tc.edit(&with)
			var more []string
			for _, r := range workeraccess.For(with) {
				if !r.Need.Met(least) {
					more = append(more, r.Resources...)
				}
			}
			slices.Sort(more)
			if !slices.Equal(more, tc.want) {
				t.Errorf("more by %v, want %v", more, tc.want)
			}
		})
	}
	if got, all := len(workeraccess.For(workeraccess.Everything())), len(workeraccess.Rules()); got != all {
		t.Errorf("everything needs %d rules of %d", got, all)
	}
}

// No rule lets its holder give itself more: no wildcards, no escalation, no writes to roles,
// webhooks, nodes or workloads other than Jobs.
func TestLeastPrivilege(t *testing.T) {
	dangerous := []string{"*", "escalate", "bind", "impersonate", "deletecollection"}
	for _, r := range workeraccess.Rules() {
		for _, word := range slices.Concat(r.Verbs, r.Resources, []string{r.Group}) {
			if slices.Contains(dangerous, word) || strings.HasSuffix(word, "/token") && !slices.Equal(r.Names, []string{"jobferry-hub-ID"}) {
				t.Errorf("%v on %v: %q", r.Verbs, r.Resources, word)
			}
		}
		writes := slices.ContainsFunc(r.Verbs, func(verb string) bool { return verb != "list" && verb != "watch" })
		if writes && r.Group != "" && r.Group != "batch" && r.Group != "coordination.k8s.io" {
			t.Errorf("%v: group %q", r.Resources, r.Group)
		}
		if r.Why == "" || r.Without == "" {
			t.Errorf("%v on %v: no reason", r.Verbs, r.Resources)
		}
	}
}

// The rules are split by scope, and none is lost.
func TestRoles(t *testing.T) {
	all := workeraccess.Rules()
	inAll, inOurs := workeraccess.ClusterRules(all), workeraccess.NamespaceRules(all)
	if len(inAll)+len(inOurs) != len(all) {
		t.Errorf("%d + %d of %d rules", len(inAll), len(inOurs), len(all))
	}
	if len(inOurs) != 3 || inOurs[0].Resources[0] != "leases" || inOurs[1].Resources[0] != "leases" || inOurs[2].Resources[0] != "serviceaccounts/token" {
		t.Errorf("in %s: %v", v1alpha1.SystemNamespace, inOurs)
	}
	limited, forJobs := workeraccess.LimitedClusterRules(all), workeraccess.JobRules(all)
	if len(limited)+len(forJobs) != len(inAll) {
		t.Errorf("%d + %d of %d rules", len(limited), len(forJobs), len(inAll))
	}
	for _, r := range limited {
		for _, verb := range r.Verbs {
			if !slices.Contains([]string{"get", "list", "watch"}, verb) && !slices.Equal(r.Resources, []string{"namespaces"}) {
				t.Errorf("in all namespaces: %v", r)
			}
		}
	}
	if first := inAll[0]; !slices.Equal(first.ResourceNames, []string{"kube-system"}) {
		t.Errorf("the first rule is about %v", first.ResourceNames)
	}
	if got := strings.Count(table(), "\n"); got != len(all)+2 {
		t.Errorf("the table has %d lines", got)
	}
}

var update = flag.Bool("update", false, "write the documentation's table anew")

// The hub may write its own Leases, and may neither create nor delete any: no origin makes one the
// leader Lease of a program.
func TestLease(t *testing.T) {
	for _, origin := range []v1alpha1.Origin{"worker", "manager", "hub", "1a2b3c4d-0000-4000-8000-000000000000"} {
		s := workeraccess.Everything()
		s.Origin = origin
		var got []string
		for _, r := range workeraccess.NamespaceRules(workeraccess.For(s)) {
			if r.Resources[0] == "leases" {
				got = append(got, fmt.Sprint(r.ResourceNames, r.Verbs))
			}
		}
		want := []string{fmt.Sprintf("[jobferry-writer-%s] [get update]", origin), fmt.Sprintf("[jobferry-fence-%s] [patch]", origin)}
		if !slices.Equal(got, want) {
			t.Errorf("origin %s: %q, want %q", origin, got, want)
		}
	}
}

// The hub may have tokens of its own account alone.
func TestToken(t *testing.T) {
	s := workeraccess.Settings{Expires: true, Account: "jobferry-hub-1a2b3c4d"}
	rules := workeraccess.NamespaceRules(workeraccess.For(s))
	rules = slices.DeleteFunc(rules, func(r rbacv1.PolicyRule) bool { return r.Resources[0] == "leases" })
	if len(rules) != 1 || !slices.Equal(rules[0].ResourceNames, []string{s.Account}) || !slices.Equal(rules[0].Verbs, []string{"create"}) {
		t.Errorf("%v", rules)
	}
}

// The documentation has this table.
func TestDocumented(t *testing.T) {
	const (
		file  = "../../docs/how-to/register.md"
		begin = "<!-- workeraccess.Table: go test ./pkg/workeraccess -update -->\n"
		end   = "<!-- end -->\n"
	)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), begin)
	documented, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s lacks the marks around the table", file)
	}
	if *update {
		if err := os.WriteFile(file, []byte(before+begin+table()+end+after), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(documented, table()); diff != "" {
		t.Errorf("%s (-documented +table; -update writes it):\n%s", file, diff)
	}
}
