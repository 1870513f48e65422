package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/client-go/kubernetes"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"

	"github.com/jobferry/jobferry/pkg/manager"
	"github.com/jobferry/jobferry/pkg/manager/servingcert"
	"github.com/jobferry/jobferry/pkg/manager/subresources"
	"github.com/jobferry/jobferry/pkg/manager/subresources/kubelet/nodecert"
	"github.com/jobferry/jobferry/pkg/util/process"
)

// off is the address that serves nothing.
const off = "0"

// subresourcesFlags are the settings of the aggregated API.
type subresourcesFlags struct {
	subresources.Options
	certFile, keyFile string
	service, secret   string
}

func (f *subresourcesFlags) add(set *pflag.FlagSet) {
	set.StringVar(&f.Address, "subresources-bind-address", off,
		"address of the aggregated API for dispatchedjobs, logs, Pods and commands, such as :6443; 0 disables it")
	set.StringVar(&f.service, "subresources-service", "jobferry-subresources",
		"Service of the APIService; the certificate is for its names")
	set.StringVar(&f.secret, "subresources-cert-secret", "jobferry-subresources-cert",
		"Secret in which the manager keeps the aggregated API's certificate")
	set.StringVar(&f.certFile, "subresources-cert-file", "",
		"certificate of the aggregated API, for example from cert-manager; the manager reads it again when it changes. Default: the manager issues one")
	set.StringVar(&f.keyFile, "subresources-key-file", "", "private key of --subresources-cert-file")
	set.IntVar(&f.StreamsPerUser, "subresources-streams-per-user", 50, "limit of logs and sessions (exec, attach, portforward) that a user has open at a time")
	set.IntVar(&f.Streams, "subresources-streams", 1000, "limit of logs and sessions that all users have open at a time; a namespace gets a further one only while it has fewer than a quarter of the free ones")
	set.IntVar(&f.WatchesPerUser, "subresources-watches-per-user", 10, "limit of watches of dispatchedjobs that a user has open at a time")
	set.IntVar(&f.Watches, "subresources-watches", 100, "limit of watches of dispatchedjobs that all users have open at a time; a namespace gets a further one only while it has fewer than a quarter of the free ones")
	set.BoolVar(&f.LogArguments, "subresources-log-arguments", false, "log the arguments of commands that users run in containers; they may be secret")
}

// leaseLabels say where the other replicas reach this one while it leads. None if that can't be
// found out, as where a proxy leads to the hub: then they can't ask it.
func (f *subresourcesFlags) leaseLabels(ctx context.Context, flags *process.Flags) (map[string]string, error) {
	if f.Address == off {
		return nil, nil
	}
	config, err := flags.Config()
	if err != nil {
		return nil, err
	}
	address, err := subresources.Reachable(ctx, f.Address, config.Host)
	if err != nil {
		return nil, nil
	}
	return subresources.LeaseLabels(address), nil
}

func (f *subresourcesFlags) setup(ctx context.Context, mgr ctrl.Manager, hub manager.Options) error {
	if f.Address == off && !hub.Pods.Enabled {
		return nil
	}
	f.Namespace, f.Origin = hub.Namespace, hub.Origin
	f.DialTimeout, f.RequestTimeout = hub.Connection.DialTimeout, hub.Connection.RequestTimeout
	var err error
	if f.Address == off {
		f.Address = ""
	} else if f.Certificate, err = f.certificate(mgr); err != nil {
		return err
	}
	if hub.Pods.Enabled {
		f.Node.Address = hub.Pods.HostPort()
		if f.Node.Certificate, err = nodeCertificate(mgr, hub.Pods); err != nil {
			return err
		}
	}
	return subresources.Setup(ctx, mgr, f.Options)
}

// nodeCertificate is for the address of this replica. The hub's signer issues it if it's asked to.
func nodeCertificate(mgr ctrl.Manager, pods manager.PodsOptions) (func(*tls.ClientHelloInfo) (*tls.Certificate, error), error) {
	var signer kubernetes.Interface
	if pods.RequestCertificate {
		hub, err := kubernetes.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
		if err != nil {
			return nil, fmt.Errorf("pods: %w", err)
		}
		signer = hub
	}
	certificate, err := nodecert.New(pods.Address, signer)
	if err != nil {
		return nil, fmt.Errorf("pods: %w", err)
	}
	return certificate.GetCertificate, mgr.Add(certificate)
}

// certificate is read from files, or issued by the manager.
func (f *subresourcesFlags) certificate(mgr ctrl.Manager) (func(*tls.ClientHelloInfo) (*tls.Certificate, error), error) {
	if (f.certFile == "") != (f.keyFile == "") {
		return nil, errors.New("--subresources-cert-file and --subresources-key-file: set both or neither")
	}
	if f.certFile != "" {
		files, err := certwatcher.New(f.certFile, f.keyFile)
		if err != nil {
			return nil, fmt.Errorf("--subresources-cert-file %s, --subresources-key-file %s: %w", f.certFile, f.keyFile, err)
		}
		return files.GetCertificate, mgr.Add(files)
	}
	rotator, err := servingcert.New(servingcert.Options{
		Namespace: f.Namespace, SecretName: f.secret,
		DNSNames: servingcert.ServiceNames(f.service, f.Namespace),
		Targets:  []servingcert.Target{servingcert.APIService(subresources.Version + "." + subresources.Group)},
	})
	if err != nil {
		return nil, fmt.Errorf("aggregated API: %w", err)
	}
	// Only replicas with a certificate can answer the hub's requests.
	if err := mgr.AddReadyzCheck("subresources-certificate", rotator.Ready); err != nil {
		return nil, fmt.Errorf("aggregated API: %w", err)
	}
	return rotator.GetCertificate, rotator.SetupWithManager(mgr)
}
