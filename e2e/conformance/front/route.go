package front

import (
	"slices"
	"strings"
)

// workerCore are the resources of the core API, and workerGroups the API groups, that the worker
// answers for: what Pods are, and what decides on them there.
var (
	workerCore   = []string{"pods", "nodes", "podtemplates", "resourcequotas", "limitranges"}
	workerGroups = []string{"policy", "resource.k8s.io", "scheduling.k8s.io", "node.k8s.io"}
)

// isOfWorker says whether the worker answers for a path.
func isOfWorker(path string) bool {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) >= 2 && parts[0] == "apis":
		return slices.Contains(workerGroups, parts[1])
	case len(parts) >= 5 && parts[0] == "api" && parts[2] == "namespaces":
		return slices.Contains(workerCore, parts[4])
	case len(parts) >= 3 && parts[0] == "api":
		return slices.Contains(workerCore, parts[2])
	default:
		return false
	}
}

// namespacesPath is where namespaces are created; below it they are deleted by their name.
const namespacesPath = "/api/v1/namespaces"

// namespaceOf is the namespace that a path is, "" if it is none.
func namespaceOf(path string) string {
	name, below := strings.CutPrefix(path, namespacesPath+"/")
	if !below || strings.Contains(name, "/") {
		return ""
	}
	return name
}
