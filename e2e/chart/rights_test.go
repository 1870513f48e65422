package chart_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/jobferry/jobferry/e2e/chart/permissions"
	"github.com/jobferry/jobferry/e2e/rig"
)

// others are rights that roles of Kubernetes' own give, to which the chart binds the program.
var others = map[permissions.Right]bool{
	{Namespace: "kube-system", Resource: "configmaps", Name: "extension-apiserver-authentication", Verb: "get"}:   true,
	{Namespace: "kube-system", Resource: "configmaps", Name: "extension-apiserver-authentication", Verb: "list"}:  true,
	{Namespace: "kube-system", Resource: "configmaps", Name: "extension-apiserver-authentication", Verb: "watch"}: true,
}

// checkRights holds what a ServiceAccount did against the reasons for what it may: nothing was
// refused, and every right was used, but for those whose row says why that isn't seen.
func checkRights(t *testing.T, cluster *rig.Cluster, account string, parts ...permissions.Part) {
	t.Helper()
	requests, err := cluster.Requests()
	if err != nil {
		t.Fatal(err)
	}
	var rows []permissions.Row
	for _, part := range parts {
		rows = append(rows, permissions.Of(part)...)
	}
	unused := permissions.Rights(rows)
	for _, row := range rows {
		for right := range permissions.Rights([]permissions.Row{row}) {
			if row.Unseen[right.Verb] != "" {
				delete(unused, right)
			}
		}
	}
	allowed := permissions.Rights(rows)
	maps.Copy(allowed, others)
	seen := 0
	for _, request := range requests {
		if request.User.Username != "system:serviceaccount:"+namespace+":"+account || request.Impersonated.Username != "" || request.Object.Resource == "" {
			continue
		}
		seen++
		if request.Response.Code == 403 {
			t.Errorf("refused: %s %s", request.Verb, request.URI)
			continue
		}
		used := covering(allowed, request)
		if strings.Contains(request.URI, "sendInitialEvents=true") {
			// The watch brings the list with it, where the API server can; older ones are asked for
			// a list.
			request.Verb = "list"
			used = append(used, covering(allowed, request)...)
		}
		if len(used) == 0 {
			t.Errorf("it did %s %s, for which the table has no row", request.Verb, request.URI)
		}
		for _, right := range used {
			delete(unused, right)
		}
	}
	t.Logf("%d requests of %s", seen, account)
	for _, right := range sorted(unused) {
		t.Errorf("never used: %s", right)
	}
}

// covering are the rights that allow a request.
func covering(rights map[permissions.Right]bool, request rig.Request) (covering []permissions.Right) {
	resource := strings.TrimSuffix(request.Object.Resource+"/"+request.Object.Subresource, "/")
	for right := range rights {
		if right.Verb == request.Verb && right.Group == request.Object.Group && right.Resource == resource &&
			(right.Namespace == "" || right.Namespace == request.Object.Namespace) &&
			(right.Name == "" || right.Name == request.Object.Name) {
			covering = append(covering, right)
		}
	}
	return covering
}

func sorted(rights map[permissions.Right]bool) []permissions.Right {
	return slices.SortedFunc(maps.Keys(rights), func(a, b permissions.Right) int {
		return strings.Compare(a.String(), b.String())
	})
}
