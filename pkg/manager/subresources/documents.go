package subresources

import (
	"crypto/sha256"
	_ "embed"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// openAPI describes the subresources and their parameters, in OpenAPI v3.
//
//go:embed openapi.json
var openAPI []byte

const openAPIPath = "/openapi/v3" + apiRoot

// documents are discovery and OpenAPI, which the hub's API server aggregates. They hold no secrets,
// so every user may read them.
func documents() map[string]any {
	groups := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{group()}}
	groups.Groups[0].TypeMeta = metav1.TypeMeta{}
	return map[string]any{
		"GET /apis":          groups,
		"GET /apis/" + Group: group(),
		"GET " + apiRoot:     resources(),
		"GET " + openAPIPath: json.RawMessage(openAPI),
		// The hash lets the hub compare the content with what it has.
		"GET /openapi/v3": map[string]any{"paths": map[string]any{
			"apis/" + Group + "/" + Version: map[string]string{"serverRelativeURL": fmt.Sprintf("%s?hash=%x", openAPIPath, sha256.Sum256(openAPI))},
		}},
		// It's empty: clients that don't know version 3 are older than any supported hub.
		"GET /openapi/v2": map[string]any{
			"swagger": "2.0", "info": map[string]string{"title": "Jobferry", "version": Version}, "paths": map[string]any{},
		},
	}
}

func group() metav1.APIGroup {
	version := metav1.GroupVersionForDiscovery{GroupVersion: Group + "/" + Version, Version: Version}
	return metav1.APIGroup{
		TypeMeta: metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"},
		Name:     Group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version,
	}
}

// resources lists dispatchedjobs and the subresources, and not jobs: those are batch/v1's.
func resources() metav1.APIResourceList {
	list := metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
		GroupVersion: Group + "/" + Version,
	}
	list.APIResources = append(list.APIResources, metav1.APIResource{
		Name: dispatchedJobsName, SingularName: "dispatchedjob", ShortNames: []string{"dj"}, Namespaced: true,
		Kind: "DispatchedJob", Verbs: []string{"get", "list", "watch"},
	})
	for _, s := range all() {
		of, err := schema.ParseGroupVersion(s.of)
		if err != nil {
			panic(err) // it's in the table
		}
		list.APIResources = append(list.APIResources, metav1.APIResource{
			Name: "jobs/" + s.name, SingularName: "job", Namespaced: true,
			Group: of.Group, Version: of.Version, Kind: s.kind, Verbs: s.verbs(),
		})
	}
	return list
}
