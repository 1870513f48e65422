package autoscaling

import (
	"errors"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Bounds of what is read of a worker's cluster-autoscaler.
const (
	// MaxGroups bounds the node groups, and maxStatusBytes the text.
	MaxGroups      = 500
	maxStatusBytes = 512 << 10
)

// NodeGroup is one of cluster-autoscaler's, as a worker says.
type NodeGroup struct {
	MaxNodes int64
	// Backoff: no nodes are added for a while, because that has just failed.
	Backoff bool
}

// errNoStatus is returned for what cluster-autoscaler doesn't write.
var errNoStatus = errors.New("the status is too long, or has aliases")

// ReadNodeGroups reads the status that cluster-autoscaler writes (YAML, from release 1.30 on), by the
// names of the node groups. Of a path, such as that of a managed instance group, the name is the last part.
func ReadNodeGroups(status string) (map[string]NodeGroup, error) {
	if len(status) > maxStatusBytes {
		return nil, errNoStatus
	}
	var whole yaml.Node
	if err := yaml.Unmarshal([]byte(status), &whole); err != nil {
		return nil, err
	}
	if hasAlias(&whole) {
		return nil, errNoStatus
	}
	var read struct {
		NodeGroups []struct {
			Name   string `yaml:"name"`
			Health struct {
				MaxSize int64 `yaml:"maxSize"`
			} `yaml:"health"`
			ScaleUp struct {
				Status string `yaml:"status"`
			} `yaml:"scaleUp"`
		} `yaml:"nodeGroups"`
	}
	if err := whole.Decode(&read); err != nil {
		return nil, err
	}
	groups := map[string]NodeGroup{}
	for _, g := range read.NodeGroups[:min(len(read.NodeGroups), MaxGroups)] {
		name := g.Name[strings.LastIndex(g.Name, "/")+1:]
		groups[name] = NodeGroup{MaxNodes: max(min(g.Health.MaxSize, maxPoolNodes), 0), Backoff: g.ScaleUp.Status == "Backoff"}
	}
	return groups, nil
}

// hasAlias reports whether a text stands for a longer one: of a few aliases, gigabytes can become.
func hasAlias(node *yaml.Node) bool {
	if node.Kind == yaml.AliasNode {
		return true
	}
	for _, part := range node.Content {
		if hasAlias(part) {
			return true
		}
	}
	return false
}
