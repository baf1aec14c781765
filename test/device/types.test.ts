/** The types of the device SDK. The type checker of `npm run lint` tests them; nothing happens when they run. */
import { describe, expectTypeOf, test } from 'vitest';
import type {
  AuthorizationRequest,
  CoapHandler,
  CoapMethod,
  ConnectionEvent,
  ConnectionRef,
  Device,
  DeviceCoapRequest,
  DeviceCoapResponse,
  DeviceConnection,
  DeviceEvent,
  DeviceLogCallback,
  DeviceLogLevel,
  DeviceLogMessage,
  PushNotification,
  ServiceInvocation,
  SvcError,
} from '../../device/index.ts';

describe('the type', () => {
  test('Device', () => {
    expectTypeOf<Device>().toHaveProperty('start').returns.resolves.toEqualTypeOf<void>();
    expectTypeOf<Device>().toHaveProperty('productId').toEqualTypeOf<string | null>();
  });

  test('SvcError', () => {
    expectTypeOf<SvcError>().toExtend<Error>();
    expectTypeOf<SvcError>().toHaveProperty('code').toEqualTypeOf<string>();
  });

  test('DeviceEvent', () => {
    type Refusals = 'UNKNOWN_FINGERPRINT' | 'WRONG_PRODUCT_ID' | 'WRONG_DEVICE_ID' | 'CERTIFICATE_VALIDATION_FAILED';
    type Failures = 'WATCHDOG_FAILURE' | 'PLATFORM_FAILURE';
    expectTypeOf<DeviceEvent>().toEqualTypeOf<'ATTACHED' | 'DETACHED' | 'CLOSED' | Refusals | Failures>();
  });

  test('DeviceConnection', () => {
    expectTypeOf<Device['connection']>().returns.toEqualTypeOf<DeviceConnection>();
    expectTypeOf<DeviceConnection>().toHaveProperty('clientFingerprint').toEqualTypeOf<string>();
  });

  test('ConnectionRef', () => {
    expectTypeOf<ConnectionRef>().toEqualTypeOf<number>();
    expectTypeOf<Device['connection']>().parameter(0).toEqualTypeOf<ConnectionRef>();
  });

  test('ConnectionEvent', () => {
    expectTypeOf<ConnectionEvent>().toEqualTypeOf<'OPENED' | 'CLOSED' | 'CHANNEL_CHANGED' | 'CRAMPED' | 'RELIEVED'>();
  });

  test('CoapMethod', () => {
    expectTypeOf<'GET' | 'POST' | 'PUT' | 'DELETE'>().toExtend<CoapMethod>();
    expectTypeOf<'SEND'>().not.toExtend<CoapMethod>();
  });

  test('DeviceCoapRequest', () => {
    expectTypeOf<DeviceCoapRequest>().toHaveProperty('payload').toExtend<Uint8Array>();
    expectTypeOf<DeviceCoapRequest>().toHaveProperty('connection').toEqualTypeOf<DeviceConnection>();
  });

  test('CoapHandler', () => {
    expectTypeOf<CoapHandler>().parameter(0).toEqualTypeOf<DeviceCoapRequest>();
    expectTypeOf<DeviceCoapResponse>().toExtend<ReturnType<CoapHandler>>();
  });

  test('ServiceInvocation', () => {
    expectTypeOf<Device['createServiceInvocation']>().returns.toEqualTypeOf<ServiceInvocation>();
    expectTypeOf<ServiceInvocation>().toHaveProperty('execute').returns.resolves.toEqualTypeOf<void>();
  });

  test('PushNotification', () => {
    expectTypeOf<Device['createPushNotification']>().returns.toEqualTypeOf<PushNotification>();
    expectTypeOf<PushNotification>().toHaveProperty('send').returns.resolves.toEqualTypeOf<void>();
  });

  test('AuthorizationRequest', () => {
    expectTypeOf<AuthorizationRequest>().toHaveProperty('action').toEqualTypeOf<string>();
    expectTypeOf<AuthorizationRequest>().toHaveProperty('connection').toEqualTypeOf<DeviceConnection>();
  });

  test('DeviceLogLevel', () => {
    expectTypeOf<DeviceLogLevel>().toEqualTypeOf<'error' | 'warn' | 'info' | 'trace'>();
  });

  test('DeviceLogMessage', () => {
    expectTypeOf<DeviceLogMessage>().toHaveProperty('severity').toEqualTypeOf<number>();
    expectTypeOf<DeviceLogMessage>().toHaveProperty('message').toEqualTypeOf<string>();
  });

  test('DeviceLogCallback', () => {
    expectTypeOf<DeviceLogCallback>().toEqualTypeOf<(message: DeviceLogMessage) => void>();
  });
});
