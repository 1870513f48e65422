package rig

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
)

// serviceIP is the address of the Service "kubernetes": the first of the service range.
func (o Options) serviceIP() netip.Addr { return o.ServiceRange.Masked().Addr().Next() }

// bindAddress is what the API server listens at.
func (o Options) bindAddress() string {
	if len(o.Addresses) > 0 {
		return "0.0.0.0"
	}
	return "127.0.0.1"
}

// controllers of kube-controller-manager that a cluster needs for Jobs, and for what is around
// them: namespaces, ServiceAccounts, RBAC, garbage collection, quota, Deployments. Node lifecycle
// is not among them: simulated nodes send no heartbeats.
var controllers = []string{
	"clusterrole-aggregation-controller", "cronjob-controller", "deployment-controller", "disruption-controller",
	"garbage-collector-controller", "namespace-controller", "pod-garbage-collector-controller",
	"replicaset-controller", "resourcequota-controller", "root-ca-certificate-publisher-controller",
	"serviceaccount-controller", "serviceaccount-token-controller", "taint-eviction-controller",
	"ttl-after-finished-controller",
}

const jobController = "job-controller"

func (c *Cluster) etcdFlags() []string {
	client, peer := "http://"+c.etcdPort.Address(), "http://"+c.peerPort.Address()
	return []string{
		"--name=" + c.Name(),
		"--data-dir=" + filepath.Join(c.dir, "etcd"),
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=" + c.Name() + "=" + peer,
		// the data needn't outlive the machine; a killed etcd loses nothing all the same
		"--unsafe-no-fsync",
		"--log-level=warn",
	}
}

func (c *Cluster) apiServerFlags() []string {
	f := c.credentials.files
	flags := []string{
		"--etcd-servers=http://" + c.etcdPort.Address(),
		"--bind-address=" + c.options.bindAddress(),
		"--advertise-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", c.apiPort.Number),
		"--endpoint-reconciler-type=none", // loopback is no valid endpoint
		"--service-cluster-ip-range=" + c.options.ServiceRange.String(),
		"--tls-cert-file=" + f.serverCert,
		"--tls-private-key-file=" + f.serverKey,
		"--client-ca-file=" + f.clusterCA,
		"--requestheader-client-ca-file=" + f.frontProxyCA,
		"--requestheader-allowed-names=" + frontProxy,
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + f.frontProxyCert,
		"--proxy-client-key-file=" + f.frontProxyKey,
		"--kubelet-client-certificate=" + f.kubeletCert,
		"--kubelet-client-key=" + f.kubeletKey,
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + f.serviceAccountKey,
		"--service-account-signing-key-file=" + f.serviceAccountKey,
		"--authorization-mode=RBAC",
		"--allow-privileged",
		// Its taint is lifted by the node lifecycle controller, which doesn't run.
		"--disable-admission-plugins=TaintNodesByCondition",
		fmt.Sprintf("--enable-priority-and-fairness=%t", c.options.PriorityAndFairness),
		"--max-requests-inflight=3000",
		"--max-mutating-requests-inflight=3000",
		"--profiling=false",
	}
	if c.options.Audit {
		flags = append(flags, "--audit-policy-file="+c.auditPolicyFile, "--audit-log-path="+c.auditLog,
			"--audit-log-maxsize=1000000") // megabytes: Requests reads one file, which is not to be rotated
	}
	if c.options.SignedKubelets {
		flags = append(flags, "--kubelet-certificate-authority="+f.clusterCA)
	}
	return append(flags, c.options.APIServerFlags...)
}

func (c *Cluster) controllerManagerFlags() []string {
	f := c.credentials.files
	enabled := append([]string{}, controllers...)
	if c.options.JobController == BuiltIn {
		enabled = append(enabled, jobController)
	}
	enabled = append(enabled, c.options.Controllers...)
	var signer []string
	if c.options.SignedKubelets {
		enabled = append(enabled, "certificatesigningrequest-signing-controller")
		signer = []string{"--cluster-signing-cert-file=" + f.clusterCA, "--cluster-signing-key-file=" + f.clusterCAKey}
	}
	return slices.Concat([]string{
		"--kubeconfig=" + c.controllerManagerFile,
		"--controllers=" + strings.Join(enabled, ","),
		"--leader-elect=false",
		"--secure-port=0",
		"--use-service-account-credentials", // so that the audit log tells the controllers apart
		"--root-ca-file=" + f.clusterCA,
		"--service-account-private-key-file=" + f.serviceAccountKey,
		"--kube-api-qps=2000",
		"--kube-api-burst=4000",
		"--concurrent-job-syncs=20",
		"--profiling=false",
	}, signer, c.options.ControllerManagerFlags)
}

func (c *Cluster) schedulerFlags() []string {
	return append([]string{
		"--kubeconfig=" + c.schedulerFile,
		"--leader-elect=false",
		"--secure-port=0",
		"--kube-api-qps=2000",
		"--kube-api-burst=4000",
		"--profiling=false",
	}, c.options.SchedulerFlags...)
}

func (c *Cluster) kwokFlags() []string {
	return []string{"--kubeconfig=" + c.kwokKubeconfig, "--config=" + c.kwokFile, "--manage-all-nodes"}
}
