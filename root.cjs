// What `import 'svc-connect'` and `require('svc-connect')` get: an import names the role that it plays.
throw new Error(
  "svc-connect has no main module: import from 'svc-connect/client', 'svc-connect/device' or 'svc-connect/server' instead (docs/sdk.md)",
);
