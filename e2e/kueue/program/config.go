package program

import (
	"fmt"

	"sigs.k8s.io/yaml"
)

// configuration is Kueue's configuration file: the defaults of its manifests, but for ports, and
// what is of no use here.
func configuration(s *setup, options Options) ([]byte, error) {
	// a server of its own, that needs to run as a Pod
	gates := map[string]bool{"VisibilityOnDemand": false}
	for name, on := range options.FeatureGates {
		gates[name] = on
	}
	config := map[string]any{
		"apiVersion": "config.kueue.x-k8s.io/v1beta2",
		"kind":       "Configuration",
		"namespace":  Namespace,
		"health":     map[string]any{"healthProbeBindAddress": fmt.Sprintf("127.0.0.1:%d", s.healthPort)},
		"metrics":    map[string]any{"bindAddress": "0"},
		"webhook":    map[string]any{"host": "127.0.0.1", "port": s.webhookPort, "certDir": s.certificates},
		"internalCertManagement": map[string]any{
			"enable": true, "webhookServiceName": webhookService, "webhookSecretName": webhookSecret,
		},
		"leaderElection": map[string]any{"leaderElect": false},
		"controller": map[string]any{"groupKindConcurrency": map[string]any{
			"Job.batch": 5, "Workload.kueue.x-k8s.io": 10, "LocalQueue.kueue.x-k8s.io": 5, "ClusterQueue.kueue.x-k8s.io": 5,
		}},
		"clientConnection": map[string]any{"qps": 1000, "burst": 2000},
		"integrations":     map[string]any{"frameworks": append([]string{"batch/job"}, options.Frameworks...)},
		"featureGates":     gates,
	}
	if options.PodsReadyTimeout > 0 {
		config["waitForPodsReady"] = map[string]any{"timeout": options.PodsReadyTimeout.String()}
	}
	return yaml.Marshal(config)
}
