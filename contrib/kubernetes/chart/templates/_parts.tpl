{{/* Parts of more than one template. */}}

{{- define "labels" -}}
app.kubernetes.io/name: action-gateway
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* A container that has no right but those of its user. */}}
{{- define "confined" -}}
runAsNonRoot: true
readOnlyRootFilesystem: true
allowPrivilegeEscalation: false
privileged: false
capabilities: {drop: [ALL]}
{{- end }}

{{- define "confinedGateway" -}}
{{ include "confined" . }}
runAsUser: 10001
runAsGroup: 10001
seccompProfile: {type: Localhost, localhostProfile: {{ .Values.seccompProfile | quote }}}
{{- with .Values.appArmorProfile }}
appArmorProfile: {type: {{ . }}}
{{- end }}
{{- end }}

{{- define "redisUrl" -}}
{{- if .Values.redis.deploy }}rediss://gate@{{ .Release.Name }}-redis{{ else }}{{ .Values.redis.url }}{{ end }}
{{- end }}

{{- define "postgresUrl" -}}
{{- if .Values.postgres.deploy }}postgresql://gateway@{{ .Release.Name }}-postgres/ledger{{ else }}{{ .Values.postgres.url }}{{ end }}
{{- end }}

{{/* Variables and volumes of the gateway, and of the doctor that looks before it. */}}
{{- define "gatewayEnv" -}}
- {name: GATEWAY__PUBLIC_BASE_URL, value: {{ .Values.publicBaseUrl | quote }}}
- {name: GATEWAY__STATE_DIR, value: /var/lib/gateway/state}
- {name: GATEWAY__LISTEN_UDS_PATH, value: /run/gateway/client/gate.sock}
- {name: GATEWAY__LISTEN_ADMIN_UDS_PATH, value: /run/gateway/admin/gate-admin.sock}
- {name: GATEWAY__MANIFESTS_DIR, value: /etc/gateway/actions}
- {name: GATEWAY__MODULES_DIR, value: /etc/gateway/actions}
- {name: GATEWAY__POLICY_DIR, value: /etc/gateway/policy}
- {name: GATEWAY__LEASE_SIGNING_KEY_PATH, value: /etc/gateway-private/keys/lease.pem}
- {name: GATEWAY__GRANT_SIGNING_KEY_PATH, value: /etc/gateway-private/keys/grant.pem}
- {name: GATEWAY__RECEIPT_SIGNING_KEY_PATH, value: /etc/gateway-private/keys/receipt.pem}
- {name: GATEWAY__RECEIPT_KEYS_JWKS_PATH, value: /etc/gateway-private/keys/receipt-keys.jwks.json}
- {name: GATEWAY__SECRETS__FILE, value: /etc/gateway-private/secrets/secrets.json}
{{- if eq .Values.form "edge" }}
- {name: GATEWAY__IDENTITY__EDGE_UIDS, value: "[{{ .Values.edge.uid }}]"}
{{- end }}
{{- with include "redisUrl" . }}
- {name: GATEWAY__STORE__REDIS_URL, value: {{ . | quote }}}
- {name: GATEWAY__STORE__REDIS_CA_FILE, value: /etc/gateway-private/redis/ca.crt}
- {name: GATEWAY__STORE__REDIS_PASSWORD_FILE, value: /etc/gateway-private/redis/password}
{{- end }}
{{- with include "postgresUrl" . }}
- {name: GATEWAY__LEDGER__URL, value: {{ . | quote }}}
- {name: GATEWAY__LEDGER__CA_FILE, value: /etc/gateway-private/postgres/ca.crt}
- {name: GATEWAY__LEDGER__PASSWORD_FILE, value: /etc/gateway-private/postgres/password}
{{- end }}
{{- with .Values.otlp.endpoint }}
- {name: GATEWAY__TELEMETRY__OTLP__ENDPOINT, value: {{ . | quote }}}
{{- with $.Values.otlp.secret }}
- {name: GATEWAY__TELEMETRY__OTLP__HEADERS_FILE, value: /etc/gateway-private/otlp/headers}
{{- end }}
{{- with $.Values.otlp.caSecret }}
- {name: GATEWAY__TELEMETRY__OTLP__CA_FILE, value: /etc/gateway/otlp/ca.crt}
{{- end }}
{{- end }}
{{- with .Values.env }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "gatewayMounts" -}}
- {name: state, mountPath: /var/lib/gateway}
- {name: client, mountPath: /run/gateway/client}
- {name: admin, mountPath: /run/gateway/admin}
- {name: tmp, mountPath: /tmp}
- {name: config, mountPath: /etc/gateway/config, readOnly: true}
- {name: actions, mountPath: /etc/gateway/actions, readOnly: true}
- {name: policy, mountPath: /etc/gateway/policy, readOnly: true}
- {name: keys, mountPath: /etc/gateway-private/keys, readOnly: true}
- {name: secrets, mountPath: /etc/gateway-private/secrets, readOnly: true}
{{- if .Values.otlp.secret }}
- {name: otlp, mountPath: /etc/gateway-private/otlp, readOnly: true}
{{- end }}
{{- if .Values.otlp.caSecret }}
- {name: otlp-ca, mountPath: /etc/gateway/otlp, readOnly: true}
{{- end }}
{{- if include "redisUrl" . }}
- {name: redis, mountPath: /etc/gateway-private/redis, readOnly: true}
{{- end }}
{{- if include "postgresUrl" . }}
- {name: postgres, mountPath: /etc/gateway-private/postgres, readOnly: true}
{{- end }}
{{- end }}
